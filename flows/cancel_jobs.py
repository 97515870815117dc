"""Ends claimed jobs that their customers have cancelled."""

from __future__ import annotations

from collections.abc import AsyncIterator

from prefect import flow
from prefect.client.schemas.objects import State

from deepgrid.lifecycle.job import Job
from deepgrid.provider.claims.customer_requests import next_cancel_request, read_cancel_requests
from deepgrid.provider.session import ProviderSession
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.action_report import reported_actions
from tasks.job_runs import hand_to_carrier
from tasks.run_step import run_step


@flow(name="cancel_jobs", flow_run_name="cancel jobs on {cluster}", persist_result=False)
async def cancel_jobs(cluster: BlockName) -> State[None]:
    """End every claimed job with a cancel request, then empty the on-chain queue of cancel requests.

    Args:
        cluster: Name of the provider block.
    """
    seen: set[int] = set()
    async with sessions.provider(cluster) as session, reported_actions(f"cancel-jobs-{cluster}") as report:
        async for job in _jobs_to_cancel(session):
            if job.id not in seen:
                seen.add(job.id)
                outcome = await run_step(f"have job {job.id} ended on {cluster}", hand_to_carrier, session, job)
                report.add(outcome.for_job(job, "its customer cancelled it"))
    return report.end("Nothing to cancel.")


async def _jobs_to_cancel(session: ProviderSession) -> AsyncIterator[Job]:
    """Yield the jobs with a cancel request, then those in the on-chain queue, which is empty afterwards."""
    cluster = session.settings.cluster
    for job in await run_step(f"read cancel requests on {cluster}", read_cancel_requests, session):
        yield job
    while (entry := await run_step(f"next cancel request on {cluster}", next_cancel_request, session)) is not None:
        yield entry
