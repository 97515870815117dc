"""A listed job can be read, even when the node's next answers come from an older block. One of 100 `dps submit --watch`
once failed with "One of the jobs does not exist.": it listed its jobs, and then the node answered from the previous
block.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from deepgrid.chain.client import Chain
from deepgrid.chain.node.node import Rpc
from deepgrid.chain.node.node_errors import Request
from deepgrid.chain.reader import SeenJobs
from deepgrid.errors import NotFound
from tests.chain.grid import Grid, People


class LaggingRpc(Rpc):
    """A node whose answers about the newest block come from block `stuck_at`, for the next `lags` batches."""

    stuck_at = 0
    lags = 0

    async def batch(self, requests: Sequence[Request]) -> list[Any]:
        if self.lags > 0:
            self.lags -= 1
            requests = [(method, [*params[:-1], hex(self.stuck_at)]) for method, params in requests]
        return await super().batch(requests)


@pytest.fixture
async def rpc(grid: Grid) -> AsyncIterator[LaggingRpc]:
    rpc = LaggingRpc(grid.book.rpc_url)
    yield rpc
    await rpc.close()


@pytest.fixture
def lagging(grid: Grid, rpc: LaggingRpc) -> Chain:
    return Chain(grid.book, rpc)


async def test_a_listed_job_is_read_until_the_node_has_it(lagging: Chain, rpc: LaggingRpc, people: People) -> None:
    rpc.stuck_at = (await people.chain.head()).number
    first, second = await people.request(), await people.request()
    assert await lagging.jobs_by_customer(people.customer.address) == [first, second]
    rpc.lags = 3
    assert [job.id for job in await lagging.jobs([first, second])] == [first, second]
    assert rpc.lags == 0
    rpc.lags = 3
    assert len(await lagging.history(second)) == 1


async def test_an_unknown_job_is_refused_at_once(lagging: Chain, people: People) -> None:
    lagging.seen_jobs.patience_s = 3600
    newest = await people.request()
    await lagging.job(newest)
    async with asyncio.timeout(60):
        with pytest.raises(NotFound, match=f"Job {newest + 1} does not exist"):
            await lagging.job(newest + 1)
        with pytest.raises(NotFound, match="Job 0 does not exist"):
            await lagging.job(0)


async def test_a_removed_job_is_waited_for_once(lagging: Chain, rpc: LaggingRpc, people: People) -> None:
    rpc.stuck_at = (await people.chain.head()).number
    kept = SeenJobs(patience_s=0.2, pause_s=0.02)
    lagging.seen_jobs = kept
    job_id = await people.request()
    await lagging.job(job_id)
    rpc.lags = 10**9
    with pytest.raises(NotFound):
        await lagging.job(job_id)
    assert kept.newest == job_id - 1
    kept.patience_s = 3600
    async with asyncio.timeout(60):
        with pytest.raises(NotFound):
            await lagging.job(job_id)


async def test_a_requested_job_is_known_to_its_writer(people: People) -> None:
    job_id = await people.request()
    assert people.chain.seen_jobs.newest == job_id
