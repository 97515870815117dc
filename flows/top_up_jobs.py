"""Extends the time limits of claimed jobs that were topped up."""

from __future__ import annotations

from collections.abc import AsyncIterator

from prefect import flow
from prefect.client.schemas.objects import State

from deepgrid.lifecycle.job import Job
from deepgrid.provider.claims.customer_requests import next_top_up, read_top_ups
from deepgrid.provider.session import ProviderSession
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.action_report import reported_actions
from tasks.job_runs import have_extended
from tasks.run_step import run_step


@flow(name="top_up_jobs", flow_run_name="top up jobs on {cluster}", persist_result=False)
async def top_up_jobs(cluster: BlockName) -> State[None]:
    """Extend every claimed job that was topped up, then empty the on-chain queue of top-ups.

    Args:
        cluster: Name of the provider block.
    """
    granted: dict[int, int] = {}
    async with sessions.provider(cluster) as session, reported_actions(f"top-up-jobs-{cluster}") as report:
        async for job in _topped_up(session):
            minutes = job.granted_minutes
            if granted.get(job.id) != minutes:
                granted[job.id] = minutes
                name = f"have job {job.id} extended to {minutes} minutes on {cluster}"
                outcome = await run_step(name, have_extended, session, job)
                report.add(outcome.for_job(job, f"it is paid for {minutes} minutes"))
    return report.end("Nothing to top up.")


async def _topped_up(session: ProviderSession) -> AsyncIterator[Job]:
    """Yield the jobs that were topped up, then those in the on-chain queue, which is empty afterwards."""
    cluster = session.settings.cluster
    for job in await run_step(f"read top-ups on {cluster}", read_top_ups, session):
        yield job
    while (entry := await run_step(f"next top-up on {cluster}", next_top_up, session)) is not None:
        yield entry
