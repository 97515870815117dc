"""A sweep of 1,000 jobs: at most 50 hot, few transactions, each result once, even after a kill."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
from collections.abc import AsyncIterator

import pytest

from deepgrid.chain.client import Chain
from deepgrid.client import AsyncGrid, JobStatus
from tests.cli.live import CREDIT, EXAMPLE
from tests.client.batch_cluster import batch_cluster
from tests.client.stage import Customer, Stage
from tests.client.sweep_process import AT_ONCE, CREDITS
from tests.client.sweeps import most_hot, request_transactions

JOBS, KILLS = 1000, 20
MOST_TRANSACTIONS, MOST_TRANSACTIONS_WITH_KILLS = 100, 140
WITHIN_S = 1800

pytestmark = [pytest.mark.deep, pytest.mark.timeout(WITHIN_S)]  # each test takes minutes


@pytest.fixture
async def first_block(grid: AsyncGrid, chain: Chain, stage: Stage) -> AsyncIterator[int]:
    """The block where a cluster begins to settle all jobs, with enough credits for 50 at once and all costs."""
    await stage.operator.writer.mint(grid.address, 6 * JOBS * CREDIT)
    async with batch_cluster(chain, stage.operator.writer, stage.provider.writer):
        yield (await chain.head()).number


async def check(chain: Chain, customer: str, first_block: int, ids: list[int], transactions: int) -> None:
    """Check that each job and each result occurs once, and that the limits held in every block."""
    own = await chain.jobs_by_customer(customer)
    assert len(ids) == len(set(ids)) == JOBS
    assert sorted(ids) == sorted(own)
    jobs = await chain.jobs(own)
    assert len({job.definition.definition_hash for job in jobs}) == JOBS
    assert {job.status for job in jobs} == {JobStatus.FINISHED}
    assert await most_hot(chain, customer, first_block) <= AT_ONCE
    assert await request_transactions(chain, customer, first_block) <= transactions


async def test_a_thousand_jobs_uninterrupted(grid: AsyncGrid, chain: Chain, first_block: int) -> None:
    sweep = await grid.map(EXAMPLE, ({"N": n} for n in range(JOBS)), credits=CREDITS, at_once=AT_ONCE)
    ids = [job.id async for job in sweep.as_completed()]
    await check(chain, grid.address, first_block, ids, MOST_TRANSACTIONS)
    assert [job.parameters for job in await sweep.results()] == [{"N": n} for n in range(JOBS)]


async def test_a_thousand_jobs_killed_at_twenty_random_points(
    grid: AsyncGrid, customer: Customer, chain: Chain, first_block: int
) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")  # shown if the test fails
    points = random.Random(seed)
    for _ in range(KILLS):
        await run(customer, points.uniform(0.0, 3.0))
    ids = await run(customer, None)
    assert ids is not None
    await check(chain, grid.address, first_block, ids, MOST_TRANSACTIONS_WITH_KILLS)


async def run(customer: Customer, kill_after_s: float | None) -> list[int] | None:
    """Run the sweep in a process, and kill it this long after its start. Returns the ids of its results if it ended."""
    argv = [sys.executable, "-m", "tests.client.sweep_process", customer.key, customer.book, str(JOBS)]
    process = await asyncio.create_subprocess_exec(*map(str, argv), stdout=asyncio.subprocess.PIPE, limit=2**20)
    assert process.stdout is not None
    try:
        assert await process.stdout.readline() == b"started\n"
        async with asyncio.timeout(kill_after_s):
            return list(json.loads(await process.stdout.readline()))
    except TimeoutError:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
