"""Handles customers' requests for claimed jobs: cancel requests and top-ups.

The truth is the job on chain (`has_cancel_request`, `granted_minutes`). A provider's queues of cancel requests and
top-ups are only hints. So a lost entry loses nothing: every step reads the job, and can be repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum

from deepgrid.errors import SlurmError
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.observability.action_taken import ActionTaken
from deepgrid.provider.session import ProviderSession

logger = logging.getLogger(__name__)


class RequestOutcome(Enum):
    """The result for one job. The values are verbs of `ActionTaken`."""

    CARRIER_WOKEN = "woke the carrier of"
    RUN_SCHEDULED = "scheduled the run of"  # no process carried the job
    NOTHING_TO_DO = "left"

    def for_job(self, job: Job, reason: str) -> ActionTaken:
        """Return the result as an action on the job."""
        why = reason if self is not RequestOutcome.NOTHING_TO_DO else f"{reason}; it is over, or elsewhere"
        return ActionTaken(self.value, "job", why, job_id=job.id, customer=job.customer)


async def read_cancel_requests(session: ProviderSession) -> list[Job]:
    """Claimed jobs with a cancel request of their customer."""
    return await _claimed_jobs(session, lambda job: job.has_cancel_request)


async def read_top_ups(session: ProviderSession) -> list[Job]:
    """Claimed jobs that were topped up since their queue was last emptied."""
    return await _claimed_jobs(session, lambda job: job.pending_top_up_wei > 0)


async def next_cancel_request(session: ProviderSession) -> Job | None:
    """Take the next entry off the on-chain queue of cancel requests. Returns its job, or None if the queue is empty."""
    job_id = await session.writer.claim_next_cancelling()
    return None if job_id is None else await session.chain.job(job_id)


async def next_top_up(session: ProviderSession) -> Job | None:
    """Take the next entry off the on-chain queue of top-ups. Returns its job, or None if the queue is empty."""
    entry = await session.writer.claim_next_top_up()
    return None if entry is None else await session.chain.job(entry.job_id)


def is_at_cluster(session: ProviderSession, job: Job) -> bool:
    """Return whether this provider has claimed the job and it is not over."""
    return job.provider == session.address and job.status.claimed


def wake_carrier(session: ProviderSession, job: Job) -> bool:
    """Wake the job's carrier. Returns False when this process has none, so that its run must be scheduled."""
    if not session.carries(session.key_of(job)):
        return False
    session.wakeups.wake([job.id])
    return True


async def extend_without_carrier(session: ProviderSession, job: Job) -> None:
    """Raise the limit of a job without a carrier to what its credits buy. Its next carrier does the same again.

    A job that is not in Slurm yet gets all its time when it is submitted. If Slurm refuses, only the customer is
    notified.
    """
    try:
        await extend_limit(session, session.key_of(job), job.granted_minutes)
    except SlurmError as error:
        if error.transient:
            raise
        logger.warning("job %d: its time limit is not extended: %s", job.id, error.message)


async def extend_limit(session: ProviderSession, key: JobKey, minutes: int) -> bool:
    """Set the claim's time limit to `minutes`. Returns False when Slurm does not have the job (yet, or any more).

    Raises SlurmError. If Slurm refuses more time, the customer is notified that the job keeps its limit.
    """
    try:
        return await session.cluster.set_time_limit(key, minutes)
    except SlurmError as error:
        if not error.transient:
            remark = f"{error.message} The job continues up to its current limit; unused credits are returned."
            await session.explain(key.job_id, "top-up", remark)
        raise


async def _claimed_jobs(session: ProviderSession, wanted: Callable[[Job], bool]) -> list[Job]:
    job_ids = await session.chain.claimed_jobs(session.address)
    return [job for job in await session.chain.jobs(job_ids) if wanted(job)] if job_ids else []
