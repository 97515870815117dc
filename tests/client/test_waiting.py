"""One poller serves all waits of a client: S6 of the interfaces, with 1,000 waits on a live chain."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deepgrid.chain.batches import BatchWriter, Request
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client import AsyncGrid, AsyncJob, JobStatus
from deepgrid.errors import ChainError
from deepgrid.lifecycle.job import JobDefinition
from tests.cli.live import CREDIT, EXAMPLE, Party
from tests.client.stage import Customer, Stage

MANY, AT_ONCE = 1000, 100
MOST_PER_SECOND = 2
MEDIAN_SEEN_WITHIN_S = 10.0  # the specification has 2 s, for an idle machine
SEEN_WITHIN_S = 30.0
MOST_GROWTH_BYTES = 100 * 2**20
WATCHED_S = 20.0
SMALL = JobDefinition(gpus=0, mem_per_cpu_mb=1, cpus_per_task=1, ntasks=1, definition_hash="")


class Counter:
    """Counts the JSON-RPC requests of the chains that are connected after its creation."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests = 0
        connect: Callable[..., Any] = Chain.connect
        monkeypatch.setattr(Chain, "connect", lambda book: connect(book, self._count))

    def _count(self, requests: int, _: ChainError | None) -> None:
        self.requests += requests


def memory_bytes() -> int:
    """Return the memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def request_many(chain: Chain, customer: Customer, operator: Party) -> None:
    """Request 1,000 small jobs of the customer, which no cluster runs."""
    wallet = Wallet.load(customer.key)
    await operator.writer.mint(wallet.address, MANY * 100 * CREDIT)
    writer = BatchWriter(chain, Sender(chain, wallet))
    try:
        async with AsyncGrid(customer.key, customer.book) as grid:
            await grid.wallet.set_allowance(MANY * 100)
        for _ in range(MANY // AT_ONCE):
            await writer.request_jobs([Request(SMALL, 100 * CREDIT, "one of many")] * AT_ONCE)
    finally:
        await writer.sender.close()


async def seen_end(wait: asyncio.Task[AsyncJob]) -> float:
    """Return when the wait ends."""
    async with asyncio.timeout(SEEN_WITHIN_S):
        await wait
    return time.monotonic()


@pytest.mark.deep
async def test_a_thousand_waits_cost_two_requests_per_second_and_see_ends_soon(
    chain: Chain, customer: Customer, operator: Party, monkeypatch: pytest.MonkeyPatch
) -> None:
    await request_many(chain, customer, operator)
    counter = Counter(monkeypatch)
    async with AsyncGrid(customer.key, customer.book) as grid:
        jobs = [job async for job in grid.jobs()]
        assert len(jobs) == MANY
        before = memory_bytes()
        waits = {job.id: asyncio.create_task(job.wait()) for job in jobs}
        await asyncio.sleep(2)  # the first poll reads all jobs
        started, counted = time.monotonic(), counter.requests
        await asyncio.sleep(WATCHED_S)
        asked = counter.requests - counted
        assert asked <= MOST_PER_SECOND * (time.monotonic() - started) + 1, asked
        delays = []
        for job in jobs[:: MANY // 10]:
            await job._connection.session.writer.cancel_job(job.id)
            ended = time.monotonic()
            delays.append(await seen_end(waits[job.id]) - ended)
            assert job.status is JobStatus.CANCELLED
        assert statistics.median(delays) <= MEDIAN_SEEN_WITHIN_S, delays
        assert memory_bytes() - before < MOST_GROWTH_BYTES
        assert sum(wait.done() for wait in waits.values()) == len(delays)
        for wait in waits.values():
            wait.cancel()
        await asyncio.gather(*waits.values(), return_exceptions=True)


async def test_waits_for_one_job_share_their_requests(
    grid: AsyncGrid, customer: Customer, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second grid waits: one that has just sent a transaction also follows it until it is final."""
    job = await grid.submit(EXAMPLE, credits=100)
    await stage.run(job)
    counter = Counter(monkeypatch)
    async with AsyncGrid(customer.key, customer.book) as other:
        waits = [asyncio.create_task((await other.job(job.id)).wait(timeout="60s")) for _ in range(20)]
        await asyncio.sleep(1)
        started, counted = time.monotonic(), counter.requests
        await asyncio.sleep(3)
        asked, watched_s = counter.requests - counted, time.monotonic() - started
        await stage.provider.writer.settle(job.id, JobStatus.FINISHED, 1)
        assert {(await wait).status for wait in waits} == {JobStatus.FINISHED}
    assert asked <= MOST_PER_SECOND * watched_s + 1
