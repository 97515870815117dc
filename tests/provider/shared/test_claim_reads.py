"""Any number of carriers of one supervisor share their reads of the chain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from deepgrid.chain.client import Chain
from deepgrid.errors import NotFound
from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.claims.observer import ClaimObserver
from deepgrid.provider.session import Intervals
from deepgrid.provider.shared.claim_reads import ClaimReads
from tests.chain.grid import Grid
from tests.provider.scene import Scene

CARRIERS = 1000
ROUNDS = 3
UNSEEN = 999_999


@pytest.fixture
async def counted(grid: Grid) -> AsyncIterator[tuple[Chain, list[int]]]:
    """The chain, and the number of requests in each exchange with its node."""
    exchanges: list[int] = []
    async with await Chain.connect(grid.book, lambda requests, _: exchanges.append(requests)) as chain:
        exchanges.clear()
        yield chain, exchanges


async def test_reads_that_come_together_make_one_request(
    key: JobKey, counted: tuple[Chain, list[int]], approved: Scene
) -> None:
    chain, exchanges = counted
    reads = ClaimReads(chain.jobs)
    jobs = await asyncio.gather(*(reads.job(key.job_id) for _ in range(CARRIERS)))
    assert {approved.session.key_of(job) for job in jobs} == {key}
    assert len(exchanges) == 1


async def test_a_missing_job_fails_only_its_own_reader(key: JobKey, counted: tuple[Chain, list[int]]) -> None:
    reads = ClaimReads(counted[0].jobs)
    found, missing = await asyncio.gather(reads.job(key.job_id), reads.job(UNSEEN), return_exceptions=True)
    assert not isinstance(found, BaseException) and found.id == key.job_id
    assert isinstance(missing, NotFound)


async def test_waiting_carriers_read_the_chain_once_per_interval(key: JobKey, approved: Scene) -> None:
    """1,000 carriers once made 33 requests per second."""
    session = approved.session
    session.intervals = replace(session.intervals, observe_again_s=5.0)
    session.monitor.watch(key)
    observers = [ClaimObserver(session, key) for _ in range(CARRIERS)]
    await asyncio.gather(*(observer.observe() for observer in observers))
    exchanges: list[int] = []
    read_jobs = session.chain.jobs

    async def counting(job_ids: list[int], block: int | None = None) -> object:
        exchanges.append(len(job_ids))
        return await read_jobs(job_ids, block)

    session.chain.jobs = counting  # type: ignore[method-assign, assignment]

    async def wait(observer: ClaimObserver) -> None:
        for _ in range(ROUNDS):
            await observer.next_change()
            await observer.observe()

    await asyncio.gather(*map(wait, observers))
    session.monitor.unwatch(key)
    # A busy machine may spread one round over a few requests.
    assert ROUNDS <= len(exchanges) <= ROUNDS * CARRIERS // 50


def test_all_carriers_observe_again_at_the_same_time() -> None:
    intervals = Intervals(observe_again_s=30.0)
    assert {now + intervals.until_observing_s(now) for now in (60.0, 61.5, 75.25, 89.0)} == {90.0}
