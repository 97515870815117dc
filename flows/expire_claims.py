"""Takes back jobs that no provider claimed in time, and jobs whose provider does not act."""

from __future__ import annotations

import asyncio
from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from pydantic import Field

from deepgrid.observability.action_taken import ActionTaken
from deepgrid.operator.expiry import read_overdue, take_back
from deepgrid.scheduling.expiry import TakeBack
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.action_report import reported_actions
from tasks.run_step import run_step


@flow(name="expire_claims", flow_run_name="expire claims", persist_result=False)
async def expire_claims(
    operator: BlockName,
    silent_hours: Annotated[int, Field(ge=24, le=720)] = 24,
    end_running_of_banned: bool = False,
) -> State[None]:
    """Take jobs back from providers that do not act. The jobs go to another cluster, or end with a full refund.

    Args:
        operator: Name of the operator block.
        silent_hours: Hours that a claimed job may be overdue at a provider in force before it is taken back. The
            contract requires at least 24. The maximum is 720, because credits stay locked for that time.
        end_running_of_banned: End jobs that run at banned or removed providers at once, with a full refund. Otherwise
            they may stay until a day after their paid time.
    """
    async with sessions.operator(operator) as session, reported_actions(f"expire-claims-{operator}") as report:
        overdue = await run_step("read overdue jobs", read_overdue, session, silent_hours, end_running_of_banned)
        done = await asyncio.gather(
            *(run_step(f"take back job {one.job.id} from {one.cluster}", take_back, session, one) for one in overdue)
        )
        report.add(*map(_action, overdue, done))
    return report.end("No claim is overdue.")


def _action(taken: TakeBack, did: bool) -> ActionTaken:
    return ActionTaken(
        verb=("ended" if taken.panic else "took back") if did else "left",
        noun="job",
        reason=taken.reason if did else "its state changed meanwhile",
        job_id=taken.job.id,
        customer=taken.job.customer,
        cluster=taken.cluster,
    )
