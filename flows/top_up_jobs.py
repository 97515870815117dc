"""Extends the time limits of claimed jobs that were topped up."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from deepgrid.provider.claims.steering import Steered, summary
from orchestration import sessions
from tasks.job_requests import have_extended, next_top_up, read_top_ups


@flow(name="top_up_jobs", flow_run_name="top up jobs on {cluster}", persist_result=False)
async def top_up_jobs(cluster: str) -> State[None]:
    """Extend every claimed job that was topped up, then empty the on-chain queue of top-ups.

    Args:
        cluster: Name of the provider block.
    """
    done: dict[int, Steered] = {}
    granted: dict[int, int] = {}
    async with sessions.provider(cluster) as session:
        for job in await read_top_ups(session):
            granted[job.id] = job.granted_minutes
            done[job.id] = await have_extended(session, job)
        while (topped_up := await next_top_up(session)) is not None:
            if granted.get(topped_up.id) != topped_up.granted_minutes:
                granted[topped_up.id] = topped_up.granted_minutes
                done[topped_up.id] = await have_extended(session, topped_up)
    return Completed(message=summary(done) or "Nothing to top up.")
