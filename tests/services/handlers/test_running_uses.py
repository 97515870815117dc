"""What running jobs use: their provider sends samples, and the parties of the job read them."""

from __future__ import annotations

import pytest

from deepgrid.billing.use_samples import MOST_SAMPLES, UseSample
from deepgrid.errors import NotFound
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.cleanup import Retention, clean_up
from deepgrid.services.storage.use_table import JobUseRecord
from tests.services.support import DOMAIN, Grid, client_of, session_key

FIRST = UseSample(cpu_s=25, memory_mb=200, read_mb=1, written_mb=2, run_s=30)
SECOND = UseSample(cpu_s=80, memory_mb=100, gpu_percent=150, gpu_memory_mb=9, run_s=90)


def key(job_id: int = 1, claimed_at: int = 3) -> JobKey:
    return JobKey(DOMAIN.chain_id, DOMAIN.verifying_contract, job_id, claimed_at)


def running(grid: Grid, job_id: int = 1, **changes: object) -> None:
    grid.chain.put(job_id, "ab" * 32, JobStatus.RUNNING, started_at=4, **changes)


async def test_customer_provider_and_operator_read_the_samples(grid: Grid) -> None:
    running(grid)
    await grid.provider.send_uses({key(): FIRST})
    await grid.provider.send_uses({key(): SECOND})
    for reader in (grid.customer, grid.provider, grid.operator):
        assert await reader.job_use(1) == (FIRST, SECOND)
    async with client_of(grid.url, session_key(rights="read")) as page:
        assert await page.job_use(1) == (FIRST, SECOND)
    grid.chain.put(1, "ab" * 32, JobStatus.FINISHED, started_at=4, ended_at=9)
    assert await grid.customer.job_use(1) == (FIRST, SECOND), "also when the job is over"


async def test_one_request_carries_the_samples_of_many_jobs(grid: Grid) -> None:
    for job_id in range(1, 101):
        running(grid, job_id)
    await grid.provider.send_uses({key(job_id): FIRST for job_id in range(1, 101)})
    assert await grid.customer.job_use(1) == await grid.customer.job_use(100) == (FIRST,)


async def test_a_new_claim_begins_again(grid: Grid) -> None:
    running(grid)
    await grid.provider.send_uses({key(): FIRST})
    running(grid, claimed_at=7)
    with pytest.raises(NotFound, match="What job 1 uses over time is not known"):
        await grid.customer.job_use(1)
    await grid.provider.send_uses({key(claimed_at=7): SECOND})
    assert await grid.customer.job_use(1) == (SECOND,)


async def test_samples_are_sealed_bounded_and_deleted_with_the_logs(grid: Grid) -> None:
    running(grid)
    for number in range(1, MOST_SAMPLES + 20):
        await grid.provider.send_uses({key(): UseSample(cpu_s=number, run_s=number)})
    found = await grid.customer.job_use(1)
    assert len(found) == MOST_SAMPLES
    assert found[-1].run_s == MOST_SAMPLES + 19
    async with grid.context.database.read() as session:
        assert b"cpu_s" not in (await session.get_one(JobUseRecord, 1)).sealed
    grid.clock.ahead_s += 31 * 86400
    await clean_up(grid.context, Retention())
    async with grid.context.database.read() as session:
        assert await session.get(JobUseRecord, 1) is None
