"""A provider follows only its own jobs.

Every change is reported, and an idle provider polls less than once per second.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from deepgrid.chain.client import Chain
from deepgrid.chain.follower.own_jobs import OwnJobs, OwnJobsSettings
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.writer import Writer
from deepgrid.errors import ChainError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from tests.chain.grid import HARDWARE, LABELS, PRICES, Grid, People, approve_waiting
from tests.waiting import until

S = JobStatus
QUICK = OwnJobsSettings(poll_s=0.02, sweep_s=0.05, idle_poll_s=0.02, idle_sweep_s=0.05, longest_pause_s=0.1)
_label = itertools.count()


class Seen:
    """All changes that a follower reported."""

    def __init__(self) -> None:
        self.changes = 0
        self.last: dict[int, Job] = {}
        self.claimable = 0

    async def read(self, own: OwnJobs) -> None:
        async for change in own.changes():
            self.changes += 1
            self.claimable = change.claimable
            self.last.update((job.id, job) for job in change.jobs)

    async def sees(self, job_id: int, status: JobStatus) -> Job:
        await until(lambda: job_id in self.last and self.last[job_id].status is status)
        return self.last[job_id]


@asynccontextmanager
async def following(chain: Chain, provider: str, settings: OwnJobsSettings = QUICK) -> AsyncIterator[Seen]:
    seen = Seen()
    task = asyncio.create_task(seen.read(OwnJobs(chain, provider, settings)))
    try:
        await until(lambda: seen.changes > 0)
        yield seen
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def another_provider(grid: Grid, people: People) -> Writer:
    other = Writer(people.chain, Sender(people.chain, grid.new_key(f"own-{next(_label)}")))
    await other.register(HARDWARE, PRICES, LABELS)
    await approve_waiting(people.operator, other.address)
    return other


async def test_the_life_of_an_own_job_is_reported(people: People) -> None:
    async with following(people.chain, people.provider.address) as seen:
        job_id = await people.assigned()
        await until(lambda: seen.claimable == 1)
        await people.provider.claim_next()
        await seen.sees(job_id, S.SCHEDULED)
        await until(lambda: seen.claimable == 0)
        await people.provider.set_running(job_id, 0)
        await seen.sees(job_id, S.RUNNING)
        await people.customer.cancel_job(job_id)  # no event says so
        await until(lambda: seen.last[job_id].has_cancel_request)
        await people.provider.settle(job_id, S.CANCELLED, 1)
        assert await seen.sees(job_id, S.CANCELLED) == await people.chain.job(job_id)


async def test_a_restart_reports_what_is_claimed_and_an_outage_only_delays(
    people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = await people.running()
    async with following(people.chain, people.provider.address) as seen:
        assert seen.last.keys() == {job_id}

        async def away(provider: str) -> int:
            raise ChainError("The node is away.")

        with monkeypatch.context() as patched:
            patched.setattr(people.chain, "claimable", away)
            await people.provider.settle(job_id, S.FINISHED, 1)
            await asyncio.sleep(0.1)
            assert seen.last[job_id].status is S.RUNNING
        await seen.sees(job_id, S.FINISHED)


async def test_jobs_of_others_cost_an_idle_provider_nothing(grid: Grid, people: People) -> None:
    """Every supervisor once read all claimed jobs of the grid every five seconds."""
    other = await another_provider(grid, people)
    asked = 0

    def count(requests: int, error: ChainError | None) -> None:
        nonlocal asked
        asked += requests

    async with (
        await Chain.connect(grid.book, count) as chain,
        following(chain, other.address, OwnJobsSettings()) as seen,
    ):
        clock = asyncio.get_running_loop().time
        before, began = asked, clock()
        while clock() - began < 4:
            await people.running()
        spent = asked - before
        assert spent <= (clock() - began) / 1.5 + 2, "one call per poll, none per job"
        assert (seen.last, seen.changes) == ({}, 1)
    settings = OwnJobsSettings()
    assert 1 / settings.idle_poll_s + 3 / settings.idle_sweep_s < 0.8, (
        "with the queue watcher, less than one per second"
    )
