"""Ends claimed jobs that their customers have cancelled."""

from __future__ import annotations

from collections.abc import AsyncIterator

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from deepgrid.lifecycle.job import Job
from deepgrid.provider.claims.customer_requests import (
    RequestOutcome,
    next_cancel_request,
    read_cancel_requests,
    summary,
)
from deepgrid.provider.session import ProviderSession
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.job_runs import hand_to_carrier
from tasks.run_step import run_step


@flow(name="cancel_jobs", flow_run_name="cancel jobs on {cluster}", persist_result=False)
async def cancel_jobs(cluster: BlockName) -> State[None]:
    """End every claimed job with a cancel request, then empty the on-chain queue of cancel requests.

    Args:
        cluster: Name of the provider block.
    """
    done: dict[int, RequestOutcome] = {}
    async with sessions.provider(cluster) as session:
        async for job in _requested(session):
            if job.id not in done:
                done[job.id] = await run_step(f"have job {job.id} ended on {cluster}", hand_to_carrier, session, job)
    return Completed(message=summary(done) or "Nothing to cancel.")


async def _requested(session: ProviderSession) -> AsyncIterator[Job]:
    """Yield the jobs with a cancel request, then those in the on-chain queue, which is empty afterwards."""
    cluster = session.settings.cluster
    for job in await run_step(f"read cancel requests on {cluster}", read_cancel_requests, session):
        yield job
    while (entry := await run_step(f"next cancel request on {cluster}", next_cancel_request, session)) is not None:
        yield entry
