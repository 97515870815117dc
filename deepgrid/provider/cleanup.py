"""Cleans up on the login node: removes old folders of finished claims, and storage that killed jobs left behind."""

from __future__ import annotations

from collections.abc import Sequence

from deepgrid.lifecycle.zombies import is_long_over, is_over
from deepgrid.provider.session import ProviderSession
from deepgrid.slurm.submit.leftovers import Leftover


async def find_leftovers(session: ProviderSession, keep_days: int) -> list[Leftover]:
    """Find leftovers to remove: storage of finished claims, and folders of claims finished for `keep_days`.

    Skips claims with a job in Slurm, and claims that the chain does not know.
    """
    found = await session.cluster.leftovers.find(session.key(0, 0), session.settings.storage.job, keep_days)
    last = await session.chain.job_count()
    known = [one for one in found if 0 < one.key.job_id <= last]
    if not known:
        return []
    held = (await session.cluster.queue(session.key(0, 0))).claims
    jobs = {job.id: job for job in await session.chain.jobs(sorted({one.key.job_id for one in known}))}
    now = await session.chain.now()
    free = [one for one in known if one.key not in held and is_over(one.key, jobs[one.key.job_id])]
    return [one for one in free if one.storage or is_long_over(one.key, jobs[one.key.job_id], now, keep_days)]


async def remove_leftovers(session: ProviderSession, leftovers: Sequence[Leftover]) -> list[Leftover]:
    """Remove leftovers until the time is up; returns the removed ones."""
    return await session.cluster.leftovers.remove(session.key(0, 0), session.settings.storage.job, leftovers)
