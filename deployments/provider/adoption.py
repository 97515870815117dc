"""Adoption: schedules the run of a claim again when no process carries it, or when its state is out of date.

A rescheduled run continues from what the chain and Slurm say. If the job is over, the run completes and reports how
it ended. Call these functions only when no other process carries for this provider: they override the runs' states.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterIdempotencyKey
from prefect.client.schemas.objects import FlowRun, StateType

from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.session import ProviderSession
from orchestration.pools import provider_pool
from orchestration.runs.flow_runs import is_carried, some_at_once
from orchestration.runs.orphaned_runs import PAGE, RESUMED, runs_in
from tasks.claim_jobs import schedule_again, start_job_runs
from tasks.run_keys import claim_of, run_key

ADOPTED_AT_ONCE = 16
OPEN_STATES = (StateType.PENDING, StateType.RUNNING, StateType.CRASHED, StateType.FAILED)

logger = logging.getLogger(__name__)


async def runs_of(client: PrefectClient, session: ProviderSession, keys: Sequence[JobKey]) -> dict[JobKey, FlowRun]:
    """The existing runs of these claims. One request reads up to PAGE runs."""
    claims = {run_key(key, session.address): key for key in keys}
    wanted = list(claims)
    found: list[FlowRun] = []
    for at in range(0, len(wanted), PAGE):
        page = FlowRunFilter(idempotency_key=FlowRunFilterIdempotencyKey(any_=wanted[at : at + PAGE]))
        found += await client.read_flow_runs(flow_run_filter=page, limit=PAGE)
    return {claims[run.idempotency_key]: run for run in found if run.idempotency_key}


async def adopt_all(session: ProviderSession, runs: Mapping[JobKey, FlowRun | None], why: str) -> None:
    """Create missing runs of these claims in bulk, and schedule the others again, some in parallel. See `adopt`."""
    if missing := [key for key, run in runs.items() if run is None]:
        logger.info("creating the runs of %d jobs, which have none", len(missing))
        await start_job_runs(session, missing)
    await some_at_once((adopt(session, key, run, why) for key, run in runs.items() if run is not None), ADOPTED_AT_ONCE)


async def adopt(session: ProviderSession, key: JobKey, run: FlowRun, why: str) -> None:
    """Schedule the claim's run again unless it is scheduled or carried already."""
    if is_coming(session, run):
        return
    logger.info("job %d: its run is %s, scheduling it again: %s", key.job_id, run.state_name or "without a state", why)
    await schedule_again(session, run, why)


def is_coming(session: ProviderSession, run: FlowRun) -> bool:
    """Whether the run is scheduled, or carried by this process's worker."""
    return (run.state is not None and run.state.is_scheduled()) or is_carried(
        run, provider_pool(session.settings.cluster)
    )


async def complete_stale_runs(client: PrefectClient, session: ProviderSession) -> None:
    """Schedule runs again that did not complete although their job is over on chain.

    Runs of other grids' jobs are left alone.
    """
    runs = await runs_in(client, provider_pool(session.settings.cluster), *OPEN_STATES, flows=RESUMED)
    claims = {key: run for run in runs if not is_coming(session, run) and (key := _claim_of(session, run))}
    if not claims:
        return
    jobs = await session.chain.jobs([key.job_id for key in claims])
    stale = [
        adopt(session, key, run, f"The job is {job.status.words}.")
        for (key, run), job in zip(claims.items(), jobs, strict=True)
        if job.status.cold or session.key_of(job) != key
    ]
    await some_at_once(stale, ADOPTED_AT_ONCE)


def _claim_of(session: ProviderSession, run: FlowRun) -> JobKey | None:
    key = claim_of(run, session.chain.book)
    return key if key is not None and run.idempotency_key == run_key(key, session.address) else None
