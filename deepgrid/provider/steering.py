"""Steering claimed jobs: what customers want of them while they are at the cluster, an end or more time.

The truth is the job on chain (`has_cancel_request`, `granted_minutes`); a provider's queues of cancel requests and
top-ups only say where to look. So nothing is lost with an entry: every step asks the job, and may be repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from enum import Enum

from deepgrid.errors import SlurmError
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.provider.session import ProviderSession

logger = logging.getLogger(__name__)


class Steered(Enum):
    """What came of looking at one job; the values read with `job 7` or `job 7, 8` in the gap."""

    CARRIER_WOKEN = "Woke the carrier of {}."
    RUN_SCHEDULED = "Nobody carried {}: its run is scheduled."
    NOTHING_TO_DO = "Of {} nothing is wanted any more."


def summary(done: Mapping[int, Steered]) -> str:
    """What was done for which job, in sentences; empty when there was none."""
    jobs = {way: [str(job_id) for job_id in sorted(done) if done[job_id] is way] for way in Steered}
    return " ".join(way.value.format(f"job {', '.join(ids)}") for way, ids in jobs.items() if ids)


async def to_be_cancelled(session: ProviderSession) -> list[Job]:
    """Jobs at this cluster that their customers have asked to end."""
    return await _claimed(session, lambda job: job.has_cancel_request)


async def topped_up(session: ProviderSession) -> list[Job]:
    """Jobs at this cluster whose credits grew since their queue was emptied last."""
    return await _claimed(session, lambda job: job.pending_top_up_wei > 0)


async def next_cancel_request(session: ProviderSession) -> Job | None:
    """Take the oldest entry off the queue of cancel requests; the job as it is now, None when the queue is empty."""
    job_id = await session.writer.claim_next_cancelling()
    return None if job_id is None else await session.chain.job(job_id)


async def next_top_up(session: ProviderSession) -> Job | None:
    """Take the oldest entry off the queue of top-ups; the job as it is now, None when the queue is empty."""
    told = await session.writer.claim_next_top_up()
    return None if told is None else await session.chain.job(told.job_id)


def at_cluster(session: ProviderSession, job: Job) -> bool:
    """Whether the job is this provider's to carry: claimed by it, and not over."""
    return job.provider == session.address and job.status.claimed


def wake_carrier(session: ProviderSession, job: Job) -> bool:
    """Let the job's carrier look now; False when this process has none, so that somebody must be found."""
    if not session.carries(session.key_of(job)):
        return False
    session.wakeups.wake([job.id])
    return True


async def give_time(session: ProviderSession, job: Job) -> None:
    """Let a job that nobody carries here run for what its credits buy; who carries it next does the same again.

    A refusal is the customer's to know, and changes nothing else. A job that Slurm does not have yet gets all its time
    when it is submitted.
    """
    try:
        await extend_limit(session, session.key_of(job), job.granted_minutes)
    except SlurmError as error:
        if error.transient:
            raise
        logger.warning("job %d: no more time: %s", job.id, error.message)


async def extend_limit(session: ProviderSession, key: JobKey, minutes: int) -> bool:
    """Let the claim's job run for `minutes` in all; False when Slurm does not have it (yet, or any more).

    Raises SlurmError; where Slurm refuses more time, the customer is told that the job goes on to the limit it has.
    """
    try:
        return await session.cluster.set_time_limit(key, minutes)
    except SlurmError as error:
        if not error.transient:
            remark = f"{error.message} The job goes on to the limit it has; what it does not use comes back."
            await session.explain(key.job_id, "top-up", remark)
        raise


async def _claimed(session: ProviderSession, wanted: Callable[[Job], bool]) -> list[Job]:
    job_ids = await session.chain.claimed_jobs(session.address)
    return [job for job in await session.chain.jobs(job_ids) if wanted(job)] if job_ids else []
