"""Cleans up on the login node.

Removes old folders of finished claims, storage that killed jobs left behind, and outputs above a customer's quota.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence

from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.lifecycle.zombies import is_long_over, is_over
from deepgrid.provider.session import ProviderSession
from deepgrid.slurm.submit.folders import Leftover, Output

MIB = 1024**2

logger = logging.getLogger(__name__)


async def find_leftovers(session: ProviderSession, keep_days: int) -> list[Leftover]:
    """Find leftovers to remove: storage of finished claims, and folders of claims finished for `keep_days`.

    Skips claims with a job in Slurm, and claims that the chain does not know.
    """
    found = await session.cluster.leftovers.find(session.key(0, 0), session.settings.storage.job, keep_days)
    jobs = await _jobs_of(session, [one.key for one in found])
    if not jobs:
        return []
    held = (await session.cluster.queue(session.key(0, 0))).claims
    now = await session.chain.now()
    known = [one for one in found if one.key.job_id in jobs and one.key not in held]
    free = [one for one in known if is_over(one.key, jobs[one.key.job_id])]
    return [one for one in free if one.storage or is_long_over(one.key, jobs[one.key.job_id], now, keep_days)]


async def remove_leftovers(session: ProviderSession, leftovers: Sequence[Leftover]) -> list[Leftover]:
    """Remove leftovers until the time is up; returns the removed ones."""
    return await session.cluster.leftovers.remove(session.key(0, 0), session.settings.storage.job, leftovers)


async def find_outputs_above_quota(session: ProviderSession) -> list[Output]:
    """Return outputs of finished claims to remove, the oldest of each customer first. Those over 1 MiB count.

    Skips outputs that are not delivered to their end.
    """
    if not (quota := session.settings.output_quota_bytes):
        return []
    found = await session.cluster.leftovers.outputs(session.key(0, 0))
    jobs = await _jobs_of(session, [one.key for one in found])
    finished: dict[str, list[Output]] = defaultdict(list)
    for one in found:
        job = jobs.get(one.key.job_id)
        if job is not None and is_over(one.key, job) and not session.logs.holds(one.key):
            finished[job.customer].append(one)
    return [one for outputs in finished.values() for one in above_quota(outputs, quota)]


def above_quota(outputs: Sequence[Output], quota_bytes: int) -> list[Output]:
    """Return the oldest of a customer's outputs that must go so that the others fit into the quota."""
    excess = sum(one.size_bytes for one in outputs) - quota_bytes
    above = []
    for one in sorted(outputs, key=lambda one: (one.key.claimed_at, one.key.job_id)):
        if excess <= 0:
            break
        above.append(one)
        excess -= one.size_bytes
    return above


async def remove_outputs(session: ProviderSession, outputs: Sequence[Output]) -> list[Output]:
    """Remove outputs until the time is up; returns the removed ones. Says in the log whose output it was."""
    removed = await session.cluster.leftovers.remove_outputs(session.key(0, 0), outputs)
    for one in removed:
        job_id, mib = one.key.job_id, one.size_bytes // MIB
        logger.info("job %d: its output of %d MiB is removed, as its customer's outputs exceed the quota", job_id, mib)
    return removed


async def _jobs_of(session: ProviderSession, keys: Sequence[JobKey]) -> dict[int, Job]:
    """Return the jobs of these claims by id, without those that the chain does not know."""
    last = await session.chain.job_count()
    ids = sorted({key.job_id for key in keys if 0 < key.job_id <= last})
    return {job.id: job for job in await session.chain.jobs(ids)}
