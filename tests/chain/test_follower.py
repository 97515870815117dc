"""The follower loses no job through downtime, reorganisations, restarts or new chains."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from deepgrid.chain.client import Chain
from deepgrid.chain.deploy.deploy import Roles, deploy
from deepgrid.chain.follower.follower import Follower
from deepgrid.chain.follower.index import JobIndex
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import ConfigurationError
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from tests.chain.anvil import Anvil
from tests.chain.grid import Grid, People, build, gather_people
from tests.waiting import until

S = JobStatus


class Watcher:
    """All reports of a follower, and the last one of each job."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self.batches: list[list[Job]] = []
        self.last: dict[int, Job] = {}

    async def run(self) -> None:
        async for jobs in self._follower.changes():
            self.batches.append(jobs)
            self.last.update((job.id, job) for job in jobs)

    async def sees(self, job_id: int, status: JobStatus) -> Job:
        await until(lambda: job_id in self.last and self.last[job_id].status is status)
        return self.last[job_id]


@asynccontextmanager
async def following(chain: Chain, index: JobIndex, sweep_s: float = 0.2) -> AsyncIterator[Watcher]:
    """Yield a running follower. It is cancelled at the end, at any point, as a crash would stop it."""
    watcher = Watcher(Follower(chain, index, poll_s=0.05, sweep_s=sweep_s))
    task = asyncio.create_task(watcher.run())
    try:
        yield watcher
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def index(tmp_path: Path) -> JobIndex:
    return JobIndex(tmp_path / "index.db")


async def test_every_change_of_a_life_is_reported(people: People, index: JobIndex) -> None:
    async with following(people.chain, index) as watcher:
        await until(lambda: bool(watcher.batches))
        job_id = await people.request()
        assert await watcher.sees(job_id, S.PENDING) == await people.chain.job(job_id)
        assert job_id in index.pending()
        await people.operator.meta_schedule(job_id, people.provider.address)
        await watcher.sees(job_id, S.META_SCHEDULED)
        assert index.hot(provider=people.provider.address.lower()) == [job_id]
        assert index.hot(customer=people.customer.address) == [job_id]
        assert job_id not in index.pending()
        await people.provider.claim_next()
        await watcher.sees(job_id, S.SCHEDULED)
        await people.provider.set_running(job_id, 0)
        await watcher.sees(job_id, S.RUNNING)
        assert index.claimed().count(job_id) == 1
        await people.provider.settle(job_id, S.FINISHED, 1)
        done = await watcher.sees(job_id, S.FINISHED)
        assert done == await people.chain.job(job_id)
        assert index.hot(provider=people.provider.address) == []


async def test_cancel_request_is_reported_without_an_event(people: People, index: JobIndex) -> None:
    job_id = await people.running()
    async with following(people.chain, index) as watcher:
        await watcher.sees(job_id, S.RUNNING)
        await people.customer.cancel_job(job_id)
        await until(lambda: watcher.last[job_id].has_cancel_request)


async def test_an_unchanged_job_is_not_reported_again(grid: Grid, people: People, index: JobIndex) -> None:
    job_id = await people.running()
    async with following(people.chain, index, sweep_s=0.0) as watcher:
        await watcher.sees(job_id, S.RUNNING)
        for _ in range(5):
            grid.anvil.mine()
        head = int(grid.anvil.call("eth_blockNumber"), 16)
        await until(lambda: max(index.blocks()) >= head)
        assert sum(job.id == job_id for batch in watcher.batches for job in batch) == 1


@pytest.mark.parametrize("blocks_away", [1, 100, 1200])
async def test_changes_during_a_downtime_are_reported_later(
    grid: Grid, people: People, index: JobIndex, tmp_path: Path, blocks_away: int
) -> None:
    ended, waiting = await people.running(), await people.request()
    async with following(people.chain, index) as watcher:
        await watcher.sees(ended, S.RUNNING)
        await watcher.sees(waiting, S.PENDING)
    index.close()
    await people.provider.settle(ended, S.FAILED, 1)
    grid.anvil.mine(blocks_away)
    new = await people.assigned()
    again = JobIndex(tmp_path / "index.db")
    assert ended in again.hot()
    async with following(people.chain, again) as watcher:
        await until(lambda: bool(watcher.batches))
        first = {job.id: job.status for job in watcher.batches[0]}
        assert (first[ended], first[waiting], first[new]) == (S.FAILED, S.PENDING, S.META_SCHEDULED)
        assert ended not in again.hot()
        assert {waiting, new} <= set(again.hot())


async def test_a_new_index_reports_only_hot_jobs(people: People, index: JobIndex) -> None:
    ended, hot = await people.running(), await people.request()
    await people.provider.settle(ended, S.FINISHED, 1)
    async with following(people.chain, index) as watcher:
        await until(lambda: bool(watcher.batches))
        reported = {job.id for job in watcher.batches[0]}
        assert hot in reported
        assert ended not in reported


async def _own(grid: Grid, chain: Chain) -> People:
    return await gather_people(grid, chain, "p")


async def test_reorganisation_of_depth_four(own_grid: Grid, index: JobIndex) -> None:
    """Four blocks with a claim, a report, a request and an assignment are replaced by empty ones."""
    async with await Chain.connect(own_grid.book) as chain:
        people = await _own(own_grid, chain)
        old = await people.assigned()
        async with following(chain, index) as watcher:
            await watcher.sees(old, S.META_SCHEDULED)
            fork = int(own_grid.anvil.call("eth_blockNumber"), 16)
            await people.provider.claim_next()
            await people.provider.set_running(old, 0)
            await people.customer.approve(10**30)
            new = await people.customer.request_job((await chain.job(old)).definition, 10**20, "doomed")
            assert int(own_grid.anvil.call("eth_blockNumber"), 16) == fork + 4
            await watcher.sees(old, S.RUNNING)
            await watcher.sees(new, S.PENDING)
            await people.rest()
            own_grid.anvil.call("anvil_reorg", 4, [])
            await watcher.sees(old, S.META_SCHEDULED)
            assert await chain.job_count() == old
            await until(lambda: index.hot() == [old])
            # The jobs continue on the new branch, with the same ids.
            await people.provider.claim_next()
            await watcher.sees(old, S.SCHEDULED)
            again = await people.request()
            assert again == new
            await until(lambda: watcher.last[new].name == "a job")


async def test_reorganisation_while_down(own_grid: Grid, index: JobIndex) -> None:
    async with await Chain.connect(own_grid.book) as chain:
        people = await _own(own_grid, chain)
        job_id = await people.assigned()
        await people.provider.claim_next()
        await people.provider.set_running(job_id, 0)
        await people.provider.settle(job_id, S.FINISHED, 1)
        async with following(chain, index) as watcher:
            await until(lambda: bool(watcher.batches))
        assert index.hot() == []
        await people.rest()
        own_grid.anvil.call("anvil_reorg", 1, [])
        async with following(chain, index) as watcher:
            await watcher.sees(job_id, S.RUNNING)
            assert index.hot() == [job_id]


async def test_chain_that_only_went_back(own_grid: Grid, index: JobIndex) -> None:
    """A node has lost its last blocks: the head is a known block, and later blocks are void."""
    async with await Chain.connect(own_grid.book) as chain:
        people = await _own(own_grid, chain)
        job_id = await people.request()
        async with following(chain, index) as watcher:
            await watcher.sees(job_id, S.PENDING)
            await people.operator.meta_schedule(job_id, people.provider.address)
            await watcher.sees(job_id, S.META_SCHEDULED)
            await people.rest()
            own_grid.anvil.call("anvil_rollback", 1)
            await watcher.sees(job_id, S.PENDING)
            assert index.pending() == [job_id]


async def test_node_that_restarts(own_grid: Grid, own_people: People, index: JobIndex) -> None:
    async with following(own_people.chain, index) as watcher:
        first = await own_people.request()
        await watcher.sees(first, S.PENDING)
        own_grid.anvil.stop()
        batches = len(watcher.batches)
        await asyncio.sleep(0.5)  # some polls fail meanwhile
        assert len(watcher.batches) == batches
        own_grid.anvil.start()
        second = await own_people.request()
        await watcher.sees(second, S.PENDING)


async def test_follower_waits_for_a_node_that_is_not_there_yet(own_grid: Grid, index: JobIndex) -> None:
    async with await Chain.connect(own_grid.book) as chain:
        own_grid.anvil.stop()
        async with following(chain, index) as watcher:
            await asyncio.sleep(0.2)
            assert not watcher.batches
            own_grid.anvil.start()
            await until(lambda: watcher.batches == [[]])


async def test_index_of_an_earlier_chain_is_emptied(people: People, index: JobIndex, tmp_path: Path) -> None:
    """A development chain often begins again at the same address. Jobs of the old chain must not return."""
    job_id = await people.request()
    async with following(people.chain, index) as watcher:
        await watcher.sees(job_id, S.PENDING)
    anvil = Anvil(tmp_path)
    anvil.start()
    try:
        other = await asyncio.to_thread(build, anvil, tmp_path / "keys")
        async with await Chain.connect(other.book) as chain, following(chain, index) as watcher:
            await until(lambda: watcher.batches == [[]])
            assert index.hot() == []
            assert index.last_id() == 0
    finally:
        anvil.stop()


async def test_chain_replaced_while_following(tmp_path: Path, index: JobIndex) -> None:
    """The node has the same address and another chain. The follower notices it and reads everything."""
    anvil = Anvil(tmp_path)
    anvil.start()
    try:
        grid = await asyncio.to_thread(build, anvil, tmp_path / "keys")
        async with await Chain.connect(grid.book) as chain:
            people = await _own(grid, chain)
            ids = [await people.request() for _ in range(3)]
            async with following(chain, index) as watcher:
                await watcher.sees(ids[-1], S.PENDING)
                anvil.stop()
                anvil.start()
                # The same admin key with the same nonces gives the contracts the same addresses.
                again = await asyncio.to_thread(_rebuild, grid)
                assert again == grid.book.meta_scheduler
                await until(lambda: index.hot() == [])
                new = await (await gather_people(grid, chain, "q")).request()
                assert new == ids[0]
                await until(lambda: index.hot() == [new])
    finally:
        anvil.stop()


def _rebuild(grid: Grid) -> str:
    operator = Wallet.load(grid.operator_key)
    grid.anvil.fund(operator.address)
    return asyncio.run(deploy(grid.anvil.url, operator, Roles.all_of(operator.address))).meta_scheduler


def test_file_that_is_no_index(tmp_path: Path) -> None:
    (tmp_path / "index.db").write_text("not a database, but long enough to be read" * 20)
    with pytest.raises(ConfigurationError, match="rebuilt from the chain"):
        JobIndex(tmp_path / "index.db")
