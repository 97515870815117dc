"""The side effects of `meta_schedule`."""

from __future__ import annotations

from collections.abc import Sequence

from deepgrid.lifecycle.job import Job
from deepgrid.operator.session import OperatorSession
from deepgrid.scheduling.match import Assignment, Cluster, Waiting
from runtime.retry_policy import side_effect


@side_effect("read pending jobs")
async def read_pending(session: OperatorSession) -> list[Job]:
    """Jobs that wait for a cluster."""
    return await session.pending()


@side_effect("read clusters")
async def read_clusters(session: OperatorSession) -> list[Cluster]:
    """Approved clusters and how busy they are."""
    return await session.clusters()


@side_effect("read refusals")
async def read_refusals(session: OperatorSession, jobs: Sequence[Job]) -> dict[int, dict[str, str]]:
    """Which providers refused which of the jobs lately, and why."""
    return await session.refusals(jobs)


@side_effect("assign jobs to clusters")
async def assign(session: OperatorSession, assignments: Sequence[Assignment]) -> int:
    """Assign jobs to providers on chain; returns how many, as somebody may have been faster."""
    return await session.assign(assignments)


@side_effect("publish why {waiting.job_id} waits")
async def publish_reason(session: OperatorSession, waiting: Waiting) -> None:
    """Let the customer read why the job waits."""
    await session.explain_waiting(waiting)
