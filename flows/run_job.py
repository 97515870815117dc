"""A claimed job from its script to its settlement."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from deepgrid.lifecycle.actions import (
    Action,
    CancelAtSlurm,
    ExtendLimit,
    Refuse,
    ReportRunning,
    Settle,
    Submit,
    Wait,
)
from deepgrid.lifecycle.drive import drive
from deepgrid.roles.carrier import Carrier
from tasks import sessions
from tasks.carrying import (
    await_change,
    cancel_at_slurm,
    extend_limit,
    fetch_script,
    refuse,
    report_running,
    settle,
    submit_to_slurm,
)


@flow(name="run_job", flow_run_name="job {job_id} on {cluster}", persist_result=False)
async def run_job(cluster: str, job_id: int, claimed_at: int) -> State[None]:
    """Carry one claim of a job to its end, from wherever the chain and Slurm say it stands.

    Args:
        cluster: Name of the provider block.
        job_id: The job's number on chain.
        claimed_at: Unix time of the claim; a later claim of the same job is another run's.
    """
    async with sessions.provider(cluster) as session:
        key = session.key(job_id, claimed_at)
        if session.carries(key):
            return Completed(message=f"Job {job_id} is carried by another run of this supervisor.")
        async with session.carry(key) as carrier:
            done = await drive(carrier.observe, lambda action: _act(carrier, action))
            await carrier.finish()
    return Completed(message=f"{done.reason[0].upper()}{done.reason[1:]}.")


async def _act(carrier: Carrier, action: Action) -> None:
    match action:
        case Submit():
            script = await fetch_script(carrier)
            if script is not None:
                await submit_to_slurm(carrier, script)
        case Wait(awaited):
            await await_change(carrier, awaited)
        case ReportRunning():
            await report_running(carrier, action)
        case ExtendLimit():
            await extend_limit(carrier, action)
        case Settle():
            await settle(carrier, action)
        case Refuse(reason):
            await refuse(carrier, reason)
        case CancelAtSlurm():
            await cancel_at_slurm(carrier)
