"""Adoption: claims that nobody carries, and runs that tell of a job what is no longer so, have their run come again.

A run that comes again goes on from what the chain and Slurm say; when the job is over, it completes and says how.
Call these only when no other process carries for this provider: they override the runs' states.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterIdempotencyKey
from prefect.client.schemas.objects import FlowRun, StateType

from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.session import ProviderSession
from runtime.orphaned_runs import PAGE, RESUMED, runs_in
from runtime.runs import is_carried
from tasks.claim_jobs import run_key, schedule_again, start_job_runs

STANDING = (StateType.PENDING, StateType.RUNNING, StateType.CRASHED, StateType.FAILED)

logger = logging.getLogger(__name__)


async def runs_of(client: PrefectClient, session: ProviderSession, keys: Sequence[JobKey]) -> dict[JobKey, FlowRun]:
    """The runs of these claims, where there are any; one request for some hundred."""
    claims = {run_key(session, key): key for key in keys}
    wanted = list(claims)
    found: list[FlowRun] = []
    for at in range(0, len(wanted), PAGE):
        page = FlowRunFilter(idempotency_key=FlowRunFilterIdempotencyKey(any_=wanted[at : at + PAGE]))
        found += await client.read_flow_runs(flow_run_filter=page, limit=PAGE)
    return {claims[run.idempotency_key]: run for run in found if run.idempotency_key}


async def adopt(session: ProviderSession, key: JobKey, run: FlowRun | None, why: str) -> None:
    """See that the claim has a run that comes, unless it comes already or completed."""
    if run is None:
        logger.info("job %d has no run: making it", key.job_id)
        await start_job_runs(session, [key])
        return
    if comes(session, run):
        return
    logger.info("the run of job %d is %s and comes again: %s", key.job_id, run.state_name or "without a state", why)
    await schedule_again(session, run, why)


def comes(session: ProviderSession, run: FlowRun) -> bool:
    """Whether the run waits for its start, or is in the hands of this process's worker."""
    return (run.state is not None and run.state.is_scheduled()) or is_carried(
        run, f"provider-{session.settings.cluster}"
    )


async def put_right(client: PrefectClient, session: ProviderSession) -> None:
    """Let those runs complete that stand as not completed although their job is over.

    What the chain says counts, whatever the run's state; runs of other grids' jobs are left alone.
    """
    runs = await runs_in(client, f"provider-{session.settings.cluster}", *STANDING, flows=RESUMED)
    claims = {key: run for run in runs if not comes(session, run) and (key := _claim_of(session, run))}
    if not claims:
        return
    for (key, run), job in zip(claims.items(), await session.chain.jobs([key.job_id for key in claims]), strict=True):
        if job.status.cold or session.key_of(job) != key:
            await adopt(session, key, run, f"The job is {job.status.words}.")


def _claim_of(session: ProviderSession, run: FlowRun) -> JobKey | None:
    try:
        key = session.key(int(run.parameters["job_id"]), int(run.parameters["claimed_at"]))
    except (KeyError, TypeError, ValueError):  # a person started it with whatever came to mind
        return None
    return key if run.idempotency_key == run_key(session, key) else None
