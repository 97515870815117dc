"""The side effects of `meta_schedule`."""

from __future__ import annotations

from collections.abc import Sequence

from deepgrid.lifecycle.job import Job
from deepgrid.operator.session import OperatorSession
from deepgrid.scheduling.match import Assignment, Cluster, Waiting
from runtime.retry_policy import side_effect


@side_effect("read pending jobs")
async def read_pending(session: OperatorSession) -> list[Job]:
    """Read the jobs that wait for a cluster."""
    return await session.pending()


@side_effect("read clusters")
async def read_clusters(session: OperatorSession) -> list[Cluster]:
    """Read the approved clusters and their load."""
    return await session.clusters()


@side_effect("read refusals")
async def read_refusals(session: OperatorSession, jobs: Sequence[Job]) -> dict[int, dict[str, str]]:
    """Read which providers refused which of the jobs recently, and why."""
    return await session.refusals(jobs)


@side_effect("assign jobs to clusters")
async def assign(session: OperatorSession, assignments: Sequence[Assignment]) -> int:
    """Assign jobs to providers on chain. Returns how many: a job or provider that changed meanwhile is skipped."""
    return await session.assign(assignments)


@side_effect("publish why {waiting.job_id} waits")
async def publish_reason(session: OperatorSession, waiting: Waiting) -> None:
    """Tell the customer why the job waits, once per reason."""
    await session.explain_waiting(waiting)
