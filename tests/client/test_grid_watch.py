"""`watch` of the grid: the changes of the customer's own jobs after a cursor."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from deepgrid.client import AsyncGrid, ClientSettings, InputError, JobChange, JobStatus
from tests.cli.live import EXAMPLE, Live, Wire
from tests.client.stage import Customer, Stage

WITHIN_S = 60
QUICK = ClientSettings(patience_s=0.1, longest_pause_s=0.3, poll_s=0.1)
LIFE = [JobStatus.PENDING, JobStatus.META_SCHEDULED, JobStatus.SCHEDULED, JobStatus.RUNNING]


async def changes(grid: AsyncGrid, cursor: str | None, count: int) -> list[JobChange]:
    """Return the first changes from the cursor on."""
    found: list[JobChange] = []
    watch: Any = grid.watch(cursor)
    async with asyncio.timeout(WITHIN_S), aclosing(watch):
        async for change in watch:
            found.append(change)
            if len(found) == count:
                break
    return found


async def test_each_change_of_the_own_jobs_comes_once_and_in_order(
    grid: AsyncGrid, stage: Stage, customer: Customer
) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    await stage.run(job)
    found = await changes(grid, "start", 4)
    assert [(change.job_id, change.status) for change in found] == [(job.id, status) for status in LIFE]
    assert [change.transaction for change in found] == await job.transactions
    assert found[0].at == job.submitted
    assert "0x" not in found[0].cursor


async def test_a_program_that_was_stopped_goes_on_without_loss_or_repetition(grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    await stage.run(job)
    cursor, statuses = "start", []
    for _ in LIFE:  # stopped after each change
        (change,) = await changes(grid, cursor, 1)
        cursor = change.cursor
        statuses.append(change.status)
    assert statuses == LIFE
    other = await grid.submit(EXAMPLE, credits=100)
    await stage.provider.writer.settle(job.id, JobStatus.FINISHED, 1)
    found = await changes(grid, cursor, 2)
    assert [(one.job_id, one.status) for one in found] == [(other.id, LIFE[0]), (job.id, JobStatus.FINISHED)]


async def test_without_a_cursor_it_begins_now_and_shows_no_other_customer(
    grid: AsyncGrid, live: Live, stage: Stage
) -> None:
    before = await grid.submit(EXAMPLE, credits=100)
    started = asyncio.create_task(changes(grid, None, 2))
    (sentinel,) = await _until_it_watches(grid, started)
    assert sentinel.job_id > before.id
    assert (await started)[1].status is JobStatus.CANCELLED


async def _until_it_watches(grid: AsyncGrid, started: asyncio.Task[list[JobChange]]) -> list[JobChange]:
    """Submit and cancel jobs until the watch has seen two changes. Returns the first."""
    async with asyncio.timeout(WITHIN_S):
        while not started.done():
            job = await grid.submit(EXAMPLE, credits=100)
            await job.cancel()
            await asyncio.wait({started}, timeout=1)
    return (await started)[:1]


async def test_an_outage_of_the_node_only_delays_changes(
    customer: Customer, live: Live, grid: AsyncGrid, tmp_path: Path
) -> None:
    async with Wire(str(live.address_book().rpc_url)) as wire:
        book = live.address_book().model_copy(update={"rpc_url": wire.url, "ws_url": None})
        async with AsyncGrid(customer.key, book.save(tmp_path / "wired.json"), settings=QUICK) as watcher:
            first = await grid.submit(EXAMPLE, credits=100)
            (change,) = await changes(watcher, "start", 1)
            waiting = asyncio.create_task(changes(watcher, change.cursor, 2))
            await wire.cut()
            second = await grid.submit(EXAMPLE, credits=100)
            await first.cancel()
            assert not (await asyncio.wait({waiting}, timeout=1))[0]
            await wire.mend()
            assert [one.job_id for one in await waiting] == [second.id, first.id]


@pytest.mark.parametrize("text", ["", "5", "5-1", "5-1-xyz", "-1-1-0123456789abcdef", "٣-1-0123456789abcdef"])
async def test_a_text_that_is_no_cursor_is_refused(grid: AsyncGrid, text: str) -> None:
    with pytest.raises(InputError, match="is not a cursor"):
        await changes(grid, text, 1)


async def test_a_grid_without_a_key_has_no_own_jobs(customer: Customer) -> None:
    async with AsyncGrid.read_only(customer.book) as reader:
        with pytest.raises(InputError, match="read-only"):
            await changes(reader, None, 1)
