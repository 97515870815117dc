"""Extends the time limits of claimed jobs that were topped up."""

from __future__ import annotations

from collections.abc import AsyncIterator

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from deepgrid.lifecycle.job import Job
from deepgrid.provider.claims.customer_requests import RequestOutcome, next_top_up, read_top_ups, summary
from deepgrid.provider.session import ProviderSession
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.job_runs import have_extended
from tasks.run_step import run_step


@flow(name="top_up_jobs", flow_run_name="top up jobs on {cluster}", persist_result=False)
async def top_up_jobs(cluster: BlockName) -> State[None]:
    """Extend every claimed job that was topped up, then empty the on-chain queue of top-ups.

    Args:
        cluster: Name of the provider block.
    """
    done: dict[int, RequestOutcome] = {}
    granted: dict[int, int] = {}
    async with sessions.provider(cluster) as session:
        async for job in _topped_up(session):
            minutes = job.granted_minutes
            if granted.get(job.id) != minutes:
                name = f"have job {job.id} extended to {minutes} minutes on {cluster}"
                granted[job.id], done[job.id] = minutes, await run_step(name, have_extended, session, job)
    return Completed(message=summary(done) or "Nothing to top up.")


async def _topped_up(session: ProviderSession) -> AsyncIterator[Job]:
    """Yield the jobs that were topped up, then those in the on-chain queue, which is empty afterwards."""
    cluster = session.settings.cluster
    for job in await run_step(f"read top-ups on {cluster}", read_top_ups, session):
        yield job
    while (entry := await run_step(f"next top-up on {cluster}", next_top_up, session)) is not None:
        yield entry
