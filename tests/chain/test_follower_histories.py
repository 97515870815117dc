"""Random histories of a chain with reorganisations and restarts, reported by a follower that is killed at times.

At the end the last report on each job is true, none is repeated, and the index knows the hot jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from deepgrid.chain.batches import Report, Request, report_args, request_args
from deepgrid.chain.client import Chain
from deepgrid.chain.follower.follower import Follower
from deepgrid.chain.follower.index import JobIndex
from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.values import coded_id
from deepgrid.errors import ChainError, NotFound
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from tests.chain.grid import CREDIT, DEFINITION, Grid, People, gather_people
from tests.waiting import until

S = JobStatus
DEEPEST = 8
EVENTS = 60
GAS = 3_000_000


@dataclass
class Reader:
    """A follower that may be killed and restarted, with its reports per life."""

    chain: Chain
    file: Path
    rng: random.Random
    lives: list[list[Job]] = field(default_factory=list)
    last: dict[int, Job] = field(default_factory=dict)

    def start(self) -> None:
        self.index = JobIndex(self.file)
        self.lives.append([])
        self.task = asyncio.create_task(self._follow(Follower(self.chain, self.index, poll_s=0.01, sweep_s=0.1)))

    async def _follow(self, follower: Follower) -> None:
        async for jobs in follower.changes():
            for _ in range(self.rng.randrange(3)):
                await asyncio.sleep(0)  # a kill may interrupt a batch here
            self.lives[-1] += jobs
            self.last.update((job.id, job) for job in jobs)

    async def kill(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.index.close()

    def repeated(self) -> list[int]:
        """Return jobs with the same report twice in a row in one life."""
        found = []
        for life in self.lives:
            seen: dict[int, Job] = {}
            found += [job.id for job in life if seen.get(job.id) == job or seen.update({job.id: job})]
        return found


class World:
    """The chain and its users. `event` makes one random thing happen."""

    def __init__(self, grid: Grid, people: People, rng: random.Random) -> None:
        self.grid = grid
        self.people = people
        self.rng = rng
        self.chain = people.chain
        self.anvil = grid.anvil
        self.requests = 0
        self.set_reorg_floor()

    def set_reorg_floor(self) -> None:
        """Later reorganisations may drop the blocks after this one, but not this one."""
        self.anvil.call("anvil_autoImpersonateAccount", True)
        self.floor = self.head()

    def head(self) -> int:
        return int(self.anvil.call("eth_blockNumber"), 16)

    def send(self, sender: str, function: str, *args: Any) -> None:
        """Send a transaction in a block of its own. A refused one makes a block too."""
        data = interface("MetaScheduler").encode(function, *args)
        call = {"from": sender, "to": self.chain.book.meta_scheduler, "data": data, "gas": hex(GAS)}
        before = self.head()
        self.anvil.call("eth_sendTransaction", call)
        while self.head() == before:  # the node mines it in another thread
            pass

    async def event(self) -> None:
        """Do a step of one job, or sometimes mine new blocks or reorganise."""
        kind = self.rng.random()
        if kind < 0.12:
            self.go_back(self.rng.randint(1, DEEPEST))
        elif kind < 0.2:
            self.anvil.mine(self.rng.randint(1, 3))
        else:
            await self.step_of_a_job()

    def go_back(self, depth: int) -> None:
        depth = min(depth, self.head() - self.floor)
        if depth:
            self.anvil.call(*(("anvil_rollback", depth) if self.rng.random() < 0.3 else ("anvil_reorg", depth, [])))

    async def step_of_a_job(self) -> None:
        customer, provider, operator = (one.address for one in (self.people.customer, self.people.provider,
                                                                self.people.operator))  # fmt: skip
        hot = [job for job in await self.jobs() if job.status.hot]
        if not hot or self.rng.random() < 0.3:
            self.requests += 1
            wanted = Request(DEFINITION, 100 * CREDIT, f"request {self.requests}")
            self.send(customer, "requestNewJob", *request_args(wanted))
            return
        job = self.rng.choice(hot)
        coded, other = coded_id(job.id), self.rng.random() < 0.2
        match job.status:
            case _ if other and job.status is S.PENDING:
                self.send(customer, "cancelJob", coded)
            case S.PENDING:
                self.send(operator, "metaSchedule", coded, provider)
            case _ if other and job.status is not S.RUNNING:
                self.send(provider, "refuseJob", coded)
            case S.META_SCHEDULED:
                self.send(provider, "claimNextJobs", self.rng.randint(1, 3))
            case S.SCHEDULED:
                self.send(provider, "providerSetJobStatus", *report_args(Report(job.id, S.RUNNING, 0)))
            case _ if other and not job.has_cancel_request:
                self.send(customer, "cancelJob", coded)  # a request, which leaves no event
            case _:
                end = self.rng.choice([S.FINISHED, S.FAILED, S.PANICKED])
                self.send(provider, "providerSetJobStatus", *report_args(Report(job.id, end, 1, "exit 1", 256)))

    async def jobs(self) -> list[Job]:
        return await self.chain.jobs(range(1, await self.chain.job_count() + 1))

    async def agrees_with(self, reader: Reader) -> None:
        """Wait until the reader is at the head. Then its reports must equal the truth."""
        truth = await self.jobs()
        head = await self.chain.head()

        def disagreement() -> dict[str, object]:
            index, blocks = reader.index, reader.index.blocks()
            found = {
                "unreported": [job for job in truth if reader.last.get(job.id) != job],
                "hot": {job.id for job in truth if job.status.hot} ^ set(index.hot()),
                "pending": {job.id for job in truth if job.status is S.PENDING} ^ set(index.pending()),
                "last": index.last_id() - len(truth),
                "cursor": max(blocks, default=0) - head.number or blocks[head.number] != head.hash,
            }
            return {name: wrong for name, wrong in found.items() if wrong}

        with contextlib.suppress(TimeoutError):  # the assert says more
            await until(lambda: not disagreement(), 20)
        assert disagreement() == {}
        assert reader.repeated() == [], "a report was repeated"
        assert not reader.task.done(), reader.task


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 13))])
async def test_history(own_grid: Grid, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    async with await Chain.connect(own_grid.book) as chain:
        people = await gather_people(own_grid, chain, "h")
        await people.customer.approve(10**30)
        await people.rest()
        world = World(own_grid, people, rng)
        reader = Reader(chain, tmp_path / "index.db", rng)
        reader.start()
        await world.agrees_with(reader)  # the first read of a grid reports only hot jobs
        for number in range(EVENTS):
            with contextlib.suppress(ChainError, NotFound):
                await world.event()
            if rng.random() < 0.1 or number == 3:
                await reader.kill()
                for _ in range(rng.randint(0, 3)):
                    await world.event()
                reader.start()
            if number % 10 == 9:
                await world.agrees_with(reader)
            if number == EVENTS // 2:
                own_grid.anvil.restart()
                world.set_reorg_floor()
        await world.agrees_with(reader)
        await reader.kill()
        assert len(reader.lives) >= 2
        assert world.requests > 5


@pytest.mark.parametrize("running", [True, False])
async def test_reorganisation_of_depth_eight(own_grid: Grid, tmp_path: Path, running: bool) -> None:
    """Eight blocks with seven steps of two jobs are dropped, while the follower runs or is down."""
    rng = random.Random(0)
    async with await Chain.connect(own_grid.book) as chain:
        people = await gather_people(own_grid, chain, "h")
        await people.customer.approve(10**30)
        old = await people.assigned()
        await people.rest()
        world = World(own_grid, people, rng)
        reader = Reader(chain, tmp_path / "index.db", rng)
        reader.start()
        await world.agrees_with(reader)
        customer, provider = people.customer.address, people.provider.address
        world.send(provider, "claimNextJobs", 1)
        world.send(provider, "providerSetJobStatus", *report_args(Report(old, S.RUNNING, 0)))
        world.send(customer, "requestNewJob", *request_args(Request(DEFINITION, 100 * CREDIT, "doomed")))
        world.send(people.operator.address, "metaSchedule", coded_id(old + 1), provider)
        world.send(provider, "claimNextJobs", 1)
        world.send(provider, "providerSetJobStatus", *report_args(Report(old + 1, S.RUNNING, 0)))
        world.send(provider, "providerSetJobStatus", *report_args(Report(old, S.FINISHED, 1)))
        world.anvil.mine()
        assert world.head() == world.floor + DEEPEST
        await world.agrees_with(reader)
        assert reader.last[old].status is S.FINISHED
        if not running:
            await reader.kill()
        own_grid.anvil.call("anvil_reorg", DEEPEST, [])
        if not running:
            reader.start()
        await world.agrees_with(reader)
        assert (reader.last[old].status, reader.index.hot()) == (S.META_SCHEDULED, [old])
        await reader.kill()
