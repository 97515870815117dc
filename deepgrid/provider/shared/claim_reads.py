"""Reads single jobs for many carriers at once: reads that come together make one request to the chain's node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from deepgrid.errors import NotFound
from deepgrid.lifecycle.job import Job
from deepgrid.slurm.submit.throttle import Batcher

JOBS_PER_REQUEST = 2000


@dataclass(slots=True, eq=False)
class _Wanted:
    job_id: int
    job: Job | None = None


class ClaimReads:
    """Reads jobs as of the newest block. A read that comes while a request is under way is part of the next one."""

    def __init__(self, read_jobs: Callable[[list[int]], Awaitable[list[Job]]]) -> None:
        """`read_jobs` reads jobs in one request. It raises NotFound if one does not exist."""
        self._read_jobs = read_jobs
        self._batcher = Batcher(self._read, delay_s=0.0, batch_size=JOBS_PER_REQUEST)

    async def job(self, job_id: int) -> Job:
        """Return the job. Raises NotFound, or ChainError if the node does not answer."""
        wanted = _Wanted(job_id)
        await self._batcher.do(wanted)
        if wanted.job is None:
            raise NotFound(f"Job {job_id} does not exist.")
        return wanted.job

    async def _read(self, batch: Sequence[_Wanted]) -> None:
        found = await self._jobs(sorted({wanted.job_id for wanted in batch}))
        for wanted in batch:
            wanted.job = found.get(wanted.job_id)

    async def _jobs(self, job_ids: list[int]) -> dict[int, Job]:
        """Return the existing ones of these jobs.

        Some are missing only after a reorganisation, which costs more requests.
        """
        try:
            return {job.id: job for job in await self._read_jobs(job_ids)}
        except NotFound:
            if len(job_ids) == 1:
                return {}
        middle = len(job_ids) // 2
        return await self._jobs(job_ids[:middle]) | await self._jobs(job_ids[middle:])
