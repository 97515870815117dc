"""Retires a grid's contracts: no new jobs, the end of all jobs, the platform's cut. Nothing is left in the contract.

It may run again at any time, and does what is missing. Its state is the chain's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from deepgrid.chain.client import Chain
from deepgrid.chain.writer import Writer
from deepgrid.lifecycle.job import Job

JOBS_AT_ONCE = 500
POLL_S = 5.0


async def retire(writer: Writer, chain: Chain, tell: Callable[[str], None], poll_s: float = POLL_S) -> None:
    """Close the grid, wait until all jobs are over, and withdraw the cut, with the admin's writer.

    `tell` gets a line per step, and one whenever the number of open jobs changes.
    """
    if await chain.accepts_requests():
        await writer.accept_requests(False)
        tell("The grid refuses new jobs from now on.")
    jobs = await open_jobs(chain, range(1, await chain.job_count() + 1))
    before = -1
    while jobs:
        if len(jobs) != before:
            how_many = "1 job is" if len(jobs) == 1 else f"{len(jobs)} jobs are"
            tell(f"{how_many} not over. The first is job {jobs[0].id}, {jobs[0].status.words}.")
            before = len(jobs)
        await asyncio.sleep(poll_s)
        jobs = await open_jobs(chain, [job.id for job in jobs])
    tell("All jobs are over.")
    if cut_wei := await chain.platform_cut():
        await writer.withdraw_cut(cut_wei)
        tell("The platform's cut is withdrawn.")


async def open_jobs(chain: Chain, ids: Sequence[int]) -> list[Job]:
    """Those of the jobs that are not over."""
    found: list[Job] = []
    for at in range(0, len(ids), JOBS_AT_ONCE):
        found += [job for job in await chain.jobs(list(ids[at : at + JOBS_AT_ONCE])) if job.status.hot]
    return found
