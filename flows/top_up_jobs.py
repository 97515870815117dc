"""Gives jobs the time that was bought for them while a cluster has them."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from deepgrid.provider.steering import Steered, summary
from runtime import sessions
from tasks.job_requests import have_extended, next_top_up, read_top_ups


@flow(name="top_up_jobs", flow_run_name="top up jobs on {cluster}", persist_result=False)
async def top_up_jobs(cluster: str) -> State[None]:
    """Have every claimed job extended that was topped up, then empty the on-chain queue of top-ups.

    Args:
        cluster: Name of the provider block.
    """
    done: dict[int, Steered] = {}
    granted: dict[int, int] = {}
    async with sessions.provider(cluster) as session:
        for job in await read_top_ups(session):
            granted[job.id] = job.granted_minutes
            done[job.id] = await have_extended(session, job)
        while (told := await next_top_up(session)) is not None:
            if granted.get(told.id) != told.granted_minutes:
                granted[told.id] = told.granted_minutes
                done[told.id] = await have_extended(session, told)
    return Completed(message=summary(done) or "Nothing to top up.")
