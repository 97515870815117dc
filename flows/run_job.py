"""Carries a claimed job from its script to its settlement."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import State
from prefect.states import Completed
from pydantic import Field

from deepgrid.errors import GridError
from deepgrid.lifecycle.actions import Action
from deepgrid.lifecycle.drive import drive
from deepgrid.provider.claims.carrier import Carrier, carry
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.artifacts import publish_card
from tasks.run_step import run_step


@flow(name="run_job", flow_run_name="job {job_id} on {cluster}", persist_result=False)
async def run_job(
    cluster: BlockName, job_id: Annotated[int, Field(ge=1)], claimed_at: Annotated[int, Field(ge=1)]
) -> State[None]:
    """Carry one claim of a job to its end, starting from its state on chain and in Slurm.

    Args:
        cluster: Name of the provider block.
        job_id: The job's number on chain.
        claimed_at: Unix time of the claim; a later claim of the same job has a run of its own.
    """
    async with sessions.provider(cluster) as session:
        key = session.key(job_id, claimed_at)
        if not session.may_carry(key):
            return Completed(message=f"Job {job_id} is carried by another run of this supervisor.")
        async with carry(session, key, tell=_tell) as carrier:
            await drive(carrier.observe, partial(_act, carrier))
            await carrier.finish()
            card = await carrier.card()
    await publish_card(card)
    return Completed(message=card.message)


def _tell(line: str) -> None:
    """Write a line of the job's story to the log of the step under way."""
    get_run_logger().info("%s", line)


async def _act(carrier: Carrier, action: Action) -> None:
    """Do one action by tasks. An outage that outlasts a task only delays the job: `drive` observes again."""
    try:
        await carrier.act(action, run_step)
    except GridError as error:
        if not error.transient:
            raise
        get_run_logger().warning("observing again: %s", error)
