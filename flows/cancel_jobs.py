"""Ends claimed jobs that their customers have cancelled."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from deepgrid.provider.claims.steering import Steered, summary
from orchestration import sessions
from tasks.job_requests import have_ended, next_cancel_request, read_cancel_requests


@flow(name="cancel_jobs", flow_run_name="cancel jobs on {cluster}", persist_result=False)
async def cancel_jobs(cluster: str) -> State[None]:
    """End every claimed job with a cancel request, then empty the on-chain queue of cancel requests.

    Args:
        cluster: Name of the provider block.
    """
    done: dict[int, Steered] = {}
    async with sessions.provider(cluster) as session:
        for job in await read_cancel_requests(session):
            done[job.id] = await have_ended(session, job)
        while (requested := await next_cancel_request(session)) is not None:
            if requested.id not in done:
                done[requested.id] = await have_ended(session, requested)
    return Completed(message=summary(done) or "Nothing to cancel.")
