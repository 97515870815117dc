"""Pausing stops new work and loses none. The work waits on chain or in the pool until the resumption."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.gates import Gate
from tests.grid.runs import FINAL, api, deployment, none_under_way, run_until, runs_of
from tests.grid.support import cold, prefect, steps

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

SUPERVISORS = ("supervisor-alpha", "supervisor-beta")
POOLS = ("operator-grid", "provider-alpha", "provider-beta", "processes")


async def test_with_every_deployment_paused_jobs_wait_and_running_ones_finish(customer: Customer) -> None:
    grid = customer.grid
    gate = Gate(grid)
    running = customer.submit(steps(gate.pass_command, "echo finished while paused"))
    await customer.until(running, lambda job: job.status is JobStatus.RUNNING)
    heard = _lengths(grid, "operator", *SUPERVISORS)
    async with all_paused(grid):
        gate.open()
        waiting = customer.submit(steps("echo waited"))
        await _until_said(grid, heard, "meta_schedule/grid is paused", "operator")
        assert (await customer.job(waiting)).status is JobStatus.PENDING
        assert (await customer.until(running, cold)).status is JobStatus.FINISHED

        await _resume(grid, "meta_schedule/grid")
        await customer.until(waiting, lambda job: job.status is JobStatus.META_SCHEDULED)
        await _until_said(grid, heard, "is paused", *SUPERVISORS)
        assert (await customer.job(waiting)).status is JobStatus.META_SCHEDULED
    assert (await customer.until(waiting, cold)).status is JobStatus.FINISHED
    for job_id in (running, waiting):
        await customer.settlement(job_id)


async def test_with_every_pool_paused_runs_wait_in_it(customer: Customer) -> None:
    grid = customer.grid
    try:
        for pool in POOLS:
            await _pause_pool(grid, pool, paused=True)
        for run in await runs_of(grid, "meta_schedule/grid", "PENDING", "RUNNING"):
            await run_until(grid, run["id"], lambda run: run["state"]["type"] in FINAL)
        job_id = customer.submit(steps("echo waited"))
        deadline = time.monotonic() + PATIENCE_S
        while not [run for run in await runs_of(grid, "meta_schedule/grid", "SCHEDULED") if not run["auto_scheduled"]]:
            assert time.monotonic() < deadline, "no run of meta_schedule waits"
            await asyncio.sleep(0.5)
        assert (await customer.job(job_id)).status is JobStatus.PENDING
    finally:
        for pool in POOLS:
            await _pause_pool(grid, pool, paused=False)
    assert (await customer.until(job_id, cold)).status is JobStatus.FINISHED
    await customer.settlement(job_id)


@asynccontextmanager
async def all_paused(grid: LocalGrid) -> AsyncIterator[None]:
    """Pause every schedule of every deployment with Prefect's command, and resume them at the end."""
    await asyncio.to_thread(prefect, grid, "deployment", "schedule", "pause", "--all")
    await none_under_way(grid, "meta_schedule/grid")
    try:
        yield
    finally:
        await asyncio.to_thread(prefect, grid, "deployment", "schedule", "resume", "--all")


async def _resume(grid: LocalGrid, name: str) -> None:
    found = await deployment(grid, name)
    async with api(grid) as client:
        for schedule in found["schedules"]:
            path = f"deployments/{found['id']}/schedules/{schedule['id']}"
            (await client.patch(path, json={"active": True})).raise_for_status()


async def _pause_pool(grid: LocalGrid, pool: str, *, paused: bool) -> None:
    async with api(grid) as client:
        (await client.patch(f"work_pools/{pool}", json={"is_paused": paused})).raise_for_status()


def _lengths(grid: LocalGrid, *names: str) -> dict[str, int]:
    """Return the length of each process's log so far."""
    return {name: len(grid.table.log_path(name).read_bytes()) for name in names}


async def _until_said(grid: LocalGrid, heard: dict[str, int], words: str, *names: str) -> None:
    """Wait until one of these processes logs the text after the given position of its log."""
    deadline = time.monotonic() + PATIENCE_S
    while not any(words.encode() in grid.table.log_path(name).read_bytes()[heard[name] :] for name in names):
        assert time.monotonic() < deadline, f"nobody says {words!r}"
        await asyncio.sleep(0.5)
