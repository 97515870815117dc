"""Counts a customer's launch failures at a provider. The chain keeps the count, so a restart loses nothing."""

from __future__ import annotations

from deepgrid.chain.client import Chain
from deepgrid.lifecycle.decide import LAUNCH_FAILURE
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus

DAY_S = 86400
RECENT_JOBS = 1000  # of the customer


async def launch_failures(chain: Chain, job: Job) -> int:
    """Count other jobs of this customer that failed to launch at this provider on the last day, by chain time."""
    ids = [other for other in await chain.jobs_by_customer(job.customer) if other != job.id]
    since = await chain.now() - DAY_S
    others = await chain.jobs(sorted(ids)[-RECENT_JOBS:])
    return sum(
        other.provider == job.provider
        and other.status is JobStatus.FAILED
        and other.last_error == LAUNCH_FAILURE
        and other.ended_at >= since
        for other in others
    )
