"""Data is deleted when it is no longer needed, and never while a job needs it."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from deepgrid.errors import NotFound
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.cleanup import Retention, clean_up
from deepgrid.services.storage import database
from tests.appending import push_log
from tests.services.support import Grid, Start, a_job
from tests.waiting import until

DAY_S = 24 * 3600
RETENTION = Retention()


async def round_of(grid: Grid, ahead_s: float) -> None:
    grid.clock.ahead_s = ahead_s
    await clean_up(grid.context, RETENTION)


async def released(grid: Grid, definition_hash: str) -> bool:
    """Return whether a provider would still get the definition."""
    grid.clock.ahead_s = 0
    grid.chain.put(99, definition_hash)
    try:
        await grid.provider.fetch_definition(99, definition_hash)
    except NotFound:
        return False
    finally:
        del grid.chain.jobs_by_id[99]
    return True


async def rows(grid: Grid, table: type[database.Table]) -> int:
    async with grid.context.database.read() as session:
        return await session.scalar(select(func.count()).select_from(table)) or 0


async def test_an_upload_that_no_job_names_goes_after_a_day(grid: Grid) -> None:
    await grid.customer.upload(a_job())
    await round_of(grid, DAY_S - 60)
    assert await rows(grid, database.Definition) == 1
    await round_of(grid, DAY_S + 60)
    assert await rows(grid, database.Definition) == 0


async def test_the_definition_of_a_waiting_job_stays(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_job())
    grid.chain.put(1, definition_hash, JobStatus.PENDING)
    await round_of(grid, 20 * DAY_S)
    assert await released(grid, definition_hash)


async def test_a_job_of_another_customer_that_names_it_keeps_nothing(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_job())
    grid.chain.put(1, definition_hash, JobStatus.PENDING, customer="0x" + "99" * 20)
    await round_of(grid, DAY_S + 60)
    assert await rows(grid, database.Definition) == 0


async def test_the_content_goes_when_all_its_jobs_are_over_and_its_releases_stay(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_job())
    grid.chain.put(1, definition_hash, JobStatus.RUNNING)
    grid.chain.put(2, definition_hash, JobStatus.FINISHED)
    await grid.provider.fetch_definition(1, definition_hash)
    for ahead_s in (1000, 2000):
        await round_of(grid, ahead_s)
    grid.chain.put(1, definition_hash, JobStatus.FAILED)
    await round_of(grid, 3000)
    await round_of(grid, 3100)
    assert await released(grid, definition_hash), "a reorganisation may bring the job back: not at once"
    del grid.chain.jobs_by_id[1], grid.chain.jobs_by_id[2]
    grid.chain.put(1, definition_hash, JobStatus.FAILED)
    await round_of(grid, 3400)
    assert not await released(grid, definition_hash)
    assert [r.job_id for r in await grid.customer.releases(definition_hash)] == [1, 99]


async def test_a_job_that_came_back_keeps_its_definition(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_job())
    grid.chain.put(1, definition_hash, JobStatus.FINISHED)
    await round_of(grid, 1000)
    grid.chain.put(1, definition_hash, JobStatus.RUNNING)
    await round_of(grid, 2000)
    grid.chain.put(1, definition_hash, JobStatus.FINISHED)
    await round_of(grid, 2100)
    assert await released(grid, definition_hash)


async def test_a_repeated_upload_restarts_the_retention(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_job())
    async with grid.context.database.write() as session:
        row = await session.get(database.Definition, definition_hash)
        assert row is not None
        row.uploaded_at += DAY_S
    await round_of(grid, DAY_S + 60)
    assert await released(grid, definition_hash)


async def test_many_jobs_are_read_page_by_page(grid: Grid) -> None:
    definition_hash = await grid.customer.upload(a_job())
    for job_id in range(1, 951):
        grid.chain.put(job_id, definition_hash if job_id in (1, 500, 950) else "0" * 64, JobStatus.PENDING)
    await round_of(grid, 0)
    assert await rows(grid, database.Use) == 3
    await round_of(grid, 0)
    assert await rows(grid, database.Use) == 3


async def test_a_silent_chain_forgets_nothing(start: Start) -> None:
    grid = await start(clean_up_every_s=0.01)
    definition_hash = await grid.customer.upload(a_job())
    grid.chain.put(1, definition_hash, JobStatus.PENDING)
    grid.chain.down = True
    with pytest.raises(Exception, match="does not answer"):
        await round_of(grid, 5 * DAY_S)
    grid.chain.down = False
    assert await released(grid, definition_hash)


async def test_logs_notices_and_nonces_expire(grid: Grid) -> None:
    grid.chain.put(1, "0" * 64)
    await push_log(grid.provider, 1, 0, b"output", final=True)
    await grid.operator.post_notice(1, "assigned", "cheapest")
    await round_of(grid, 29 * DAY_S)
    assert [await rows(grid, t) for t in (database.LogChunk, database.Log, database.NoticeRecord)] == [1, 1, 1]
    assert await rows(grid, database.UsedNonce) == 0
    await round_of(grid, 31 * DAY_S)
    assert [await rows(grid, t) for t in (database.LogChunk, database.Log, database.NoticeRecord)] == [0, 0, 0]


async def test_the_running_service_cleans_up_by_itself(start: Start) -> None:
    grid = await start(clean_up_every_s=0.05, retention=Retention(unused_s=-1))
    await grid.customer.upload(a_job())

    async def gone() -> bool:
        return await rows(grid, database.Definition) == 0

    await until(gone)
