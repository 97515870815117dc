"""`jobs()` is like a list: counted, sliced, shown as a table, and read in pages without keeping the jobs."""

from __future__ import annotations

import asyncio

import pytest

from deepgrid.client import AsyncGrid, Grid, InputError, JobStatus, job_list
from tests.cli.live import EXAMPLE
from tests.client.stage import Customer


@pytest.fixture(autouse=True)
def pages_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_list, "JOBS_PER_CALL", 2)


async def test_jobs_are_counted_sliced_and_read_again(grid: AsyncGrid, customer: Customer) -> None:
    submitted = [await grid.submit(EXAMPLE, credits=100, name=f"job-{at}") for at in range(5)]
    await submitted[1].cancel()
    newest = [job.id for job in submitted[::-1]]
    pending = [number for number in newest if number != submitted[1].id]
    jobs, waiting = grid.jobs(), grid.jobs("pending")
    assert [job.id async for job in jobs[1:4]] == newest[1:4]
    assert [job.id async for job in jobs[1:][1:9]] == newest[2:]
    assert [job.id async for job in waiting[3:]] == pending[3:]
    assert (await jobs.count(), await jobs[2:].count(), await jobs[:2].count(), await jobs[9:].count()) == (5, 3, 2, 0)
    assert await waiting.count() == 4
    await submitted[0].cancel()
    again = {job.id: job.status async for job in waiting}  # the same jobs, as they are now
    assert list(again) == pending
    assert again[submitted[0].id] is JobStatus.CANCELLED
    assert list((await jobs[:2].to_frame())["name"]) == ["job-4", "job-3"]
    with pytest.raises(InputError, match="no step"):
        jobs[::2]
    await asyncio.to_thread(_assert_like_a_list, customer, newest)


def _assert_like_a_list(customer: Customer, newest: list[int]) -> None:
    with Grid(customer.key, customer.book) as grid:
        jobs = grid.jobs()
        assert (len(jobs), jobs[0].id, jobs[-1].id) == (5, newest[0], newest[-1])
        assert [job.id for job in jobs] == newest == [job.id for job in list(jobs)]
        assert [job.id for job in jobs[-2:]] == newest[-2:]
        assert jobs[:2].to_frame().shape[0] == 2
        assert repr(jobs) == "Jobs(5 found so far)"
        for place in (5, -6):
            with pytest.raises(IndexError, match="no job at place"):
                jobs[place]
        page = grid.jobs("cancelled")._repr_html_()
        assert "2 of 2 jobs: 2 cancelled" in page
        assert f">{newest[-1]}<" in page


async def test_two_readers_of_one_list_get_all_jobs(grid: AsyncGrid) -> None:
    newest = [(await grid.submit(EXAMPLE, credits=100)).id for _ in range(3)][::-1]
    jobs = grid.jobs("pending")

    async def read() -> list[int]:
        return [job.id async for job in jobs]

    assert await asyncio.gather(read(), read(), jobs.count()) == [newest, newest, 3]
