"""Reads from the chain whether a claim is still open. Answers are cached briefly, because a job sends many parts."""

from __future__ import annotations

from collections import OrderedDict

from deepgrid.services.core import ServiceCore

REMEMBERED_S = 5
MOST_REMEMBERED = 5000


class ClaimStates:
    """Cache of claims."""

    def __init__(self, core: ServiceCore) -> None:
        self._core = core
        self._seen: OrderedDict[tuple[int, int], tuple[bool, int]] = OrderedDict()

    async def is_open(self, job_id: int, claimed_at: int) -> bool:
        """Return whether the job is scheduled or running with this claim. Refuses with 404 or 503."""
        key, now = (job_id, claimed_at), self._core.clock()
        known = self._seen.get(key)
        if known is None or known[1] < now:
            job = await self._core.job(job_id)
            known = (job.status.claimed and job.claimed_at == claimed_at, now + REMEMBERED_S)
            self._seen[key] = known
            if len(self._seen) > MOST_REMEMBERED:
                self._seen.popitem(last=False)
        return known[0]
