"""The queue oracle: the assigned and running jobs with their positions, read from the chain once for all clients."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.handlers import job_queue
from tests.services.support import ACCOUNTS, Grid, MemoryChain, Start

NAME = "0" * 64
OTHER = ACCOUNTS["other_provider"].address


@pytest.fixture
def grid(grid: Grid) -> Grid:
    """The services. Their snapshot ages only when a test says so."""
    grid.clock.stop()
    return grid


async def get(grid: Grid, path: str = "/v1/queue") -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as http:
        return await http.get(grid.url + path)


PROTOCOL = Path(__file__).parents[3] / "docs" / "reference" / "protocol.md"


def key(job_id: int) -> str:
    return f"0x{job_id:064x}"


async def test_an_empty_grid_has_an_empty_queue(start: Start) -> None:
    answer = await get(await start(MemoryChain()))
    assert (answer.status_code, answer.json()) == (200, {})
    assert answer.headers["content-type"] == "application/json"


async def test_jobs_that_are_assigned_or_running_are_keys(grid: Grid) -> None:
    for status in JobStatus:
        grid.chain.put(status + 1, NAME, status)
    queue = (await get(grid)).json()
    assert list(queue) == [key(2), key(3), key(4)]
    assert queue[key(2)] == {"status": "meta_scheduled", "position": 1, "length": 1}
    assert queue[key(3)] == {"status": "scheduled", "position": None, "length": None}
    assert queue[key(4)]["status"] == "running"


async def test_positions_count_in_the_line_of_each_provider(grid: Grid) -> None:
    grid.chain.put(1, NAME, JobStatus.META_SCHEDULED, assigned_at=30)
    grid.chain.put(2, NAME, JobStatus.META_SCHEDULED, assigned_at=20)
    grid.chain.put(3, NAME, JobStatus.META_SCHEDULED, assigned_at=10, provider=OTHER)
    grid.chain.put(4, NAME, JobStatus.SCHEDULED, assigned_at=5)
    for pending in (5, 6):
        grid.chain.put(pending, NAME, JobStatus.PENDING, assigned_at=0, provider=None)
    found = {}
    for job_id in range(1, 7):
        place = (await get(grid, f"/v1/jobs/{job_id}/queue")).json()
        found[job_id] = (place["position"], place["length"])
    assert found == {1: (2, 2), 2: (1, 2), 3: (1, 1), 4: (None, None), 5: (1, 2), 6: (2, 2)}


async def test_a_job_that_is_over_or_unknown_has_no_place(grid: Grid) -> None:
    grid.chain.put(1, NAME, JobStatus.FINISHED)
    for job_id in (1, 2):
        answer = await get(grid, f"/v1/jobs/{job_id}/queue")
        assert (answer.status_code, answer.json()) == (200, {"status": None, "position": None, "length": None})


async def test_the_chain_is_read_once_for_many_clients(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    before = grid.chain.calls
    answers = await asyncio.gather(*(get(grid) for _ in range(30)))
    assert {tuple(answer.json()) for answer in answers} == {(key(1),)}
    assert grid.chain.calls == before + 2
    grid.chain.put(1, NAME, JobStatus.FINISHED)
    grid.clock.ahead_s += job_queue.FRESH_S + 1
    assert (await get(grid)).json() == {}


async def test_a_silent_chain_is_asked_once_in_a_while_and_said(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    grid.chain.down = True
    before = grid.chain.calls
    for _ in range(3):
        answer = await get(grid)
        assert (answer.status_code, answer.json()) == (503, {"error": "the chain does not answer at the moment"})
    assert grid.chain.calls == before + 1
    grid.chain.down = False
    grid.clock.ahead_s += job_queue.FRESH_S + 1
    assert list((await get(grid)).json()) == [key(1)]


async def test_a_refresh_reads_a_limited_number_of_jobs(grid: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest jobs are known at once. Old ones that are not over are known after some refreshes."""
    monkeypatch.setattr(job_queue, "JOBS_PER_REFRESH", 10)
    for job_id in range(2, 30):
        grid.chain.put(job_id, NAME, JobStatus.FINISHED)
    for job_id in (1, 30):
        grid.chain.put(job_id, NAME)
    seen = []
    for _ in range(7):
        seen.append(list((await get(grid)).json()))
        grid.clock.ahead_s += job_queue.FRESH_S + 1
    assert seen[0] == [key(30)]
    assert seen[-1] == [key(1), key(30)]


async def test_a_chain_that_replaced_blocks_is_read_anew(grid: Grid) -> None:
    for job_id in (1, 2):
        grid.chain.put(job_id, NAME)
    assert len((await get(grid)).json()) == 2
    del grid.chain.jobs_by_id[2]
    grid.clock.ahead_s += job_queue.FRESH_S + 1
    assert list((await get(grid)).json()) == [key(1)]


def test_the_protocol_page_names_the_limits() -> None:
    page = PROTOCOL.read_text()
    assert f"read from the chain at most every {job_queue.FRESH_S} s" in page
    assert f"reads at most {job_queue.JOBS_PER_REFRESH:,} jobs" in page
