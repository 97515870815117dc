"""A simulated operator and provider: every pending job of the grid is assigned, claimed and settled, in batches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from deepgrid.chain.batches import Report
from deepgrid.chain.client import Chain
from deepgrid.chain.writer import Writer
from deepgrid.errors import NotFound
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from tests.chain.grid import pass_a_second

MOST = 100
End = Callable[[Job], tuple[JobStatus, int]]


def finishes(_: Job) -> tuple[JobStatus, int]:
    """Let every job succeed."""
    return JobStatus.FINISHED, 0


class BatchCluster:
    """Settles the jobs that appear after its creation.

    Attributes:
        end: Decides how a job ends: its state and its wait status.
        error: Error of each job that does not finish.
        settled: Number of settled jobs.
        last_at: Monotonic time of the last settlement.
    """

    def __init__(self, chain: Chain, operator: Writer, provider: Writer, first_id: int, end: End = finishes) -> None:
        self._chain = chain
        self._operator = operator
        self._provider = provider
        self._next_id = first_id
        self.end = end
        self.error = "as told"
        self.settled = 0
        self.last_at = 0.0

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            last = await self._chain.job_count()
            new = list(range(self._next_id, last + 1))[:MOST]
            if not new:
                await asyncio.sleep(0.05)
                continue
            try:
                jobs = await self._chain.jobs(new)
            except NotFound:  # the node answered from the block before
                continue
            self._next_id = new[-1] + 1
            await self._settle([job for job in jobs if job.status is JobStatus.PENDING])

    async def _settle(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        await self._operator.meta_schedule_jobs([(job.id, self._provider.address) for job in jobs])
        claimed = [job.job_id for job in await self._provider.claim_next_jobs(MOST)]
        await self._provider.report_jobs([Report(job_id, JobStatus.RUNNING, 0) for job_id in claimed])
        await pass_a_second(self._chain)
        by_id = {job.id: job for job in jobs}
        reports = []
        for job_id in claimed:
            status, wait_status = self.end(by_id[job_id])
            reports.append(Report(job_id, status, 1, "" if status is JobStatus.FINISHED else self.error, wait_status))
        await self._provider.report_jobs(reports)
        self.settled, self.last_at = self.settled + len(claimed), time.monotonic()


@asynccontextmanager
async def batch_cluster(
    chain: Chain, operator: Writer, provider: Writer, end: End = finishes
) -> AsyncIterator[BatchCluster]:
    """Run a cluster while the context lasts. An error of the cluster ends the context."""
    cluster = BatchCluster(chain, operator, provider, await chain.job_count() + 1, end)
    working = asyncio.create_task(cluster.run())
    try:
        yield cluster
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        if not working.cancelled():
            working.result()
