"""A draining cluster claims nothing new and settles its jobs.

When it is drained, its supervisor exits with status 0.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import DPS, PATIENCE_S, Customer
from tests.grid.gates import Gate
from tests.grid.runs import api, deployment, run_now
from tests.grid.support import cold, steps
from tests.grid.writers import writer_of

pytestmark = [pytest.mark.deep, pytest.mark.timeout(900)]

ALPHA = "name=alpha"
SUPERVISOR = "supervisor-alpha"
CLAIM = "claim_jobs/alpha"


class Provider:
    """The provider of alpha at a terminal."""

    def __init__(self, grid: LocalGrid, home: Path) -> None:
        self.environment = {**os.environ, **grid.prefect.environment(), "DEEPGRID_BOOK": str(grid.book)}
        self.environment |= {"DPS_KEY_FILE": str(grid.keys.file("alpha")), "HOME": str(home)}

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(DPS), "provider", *arguments], env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    async def says(self, *arguments: str) -> str:
        """Return the output of a verb, which must succeed."""
        process = self.begin(*arguments)
        said, _ = await asyncio.to_thread(process.communicate, timeout=PATIENCE_S)
        assert process.returncode == 0, said
        return said


@pytest.fixture
def provider(customer: Customer) -> Provider:
    return Provider(customer.grid, customer.home)


@asynccontextmanager
async def supervised_by(provider: Provider, grid: LocalGrid) -> AsyncIterator[subprocess.Popen[str]]:
    """Run a supervisor of alpha that the test can await, in place of the grid's own."""
    await asyncio.to_thread(grid.table.stop, SUPERVISOR)
    process = provider.begin("serve", "alpha")
    try:
        yield process
    except BaseException:
        await provider.says("resume", "alpha")
        raise
    finally:
        process.terminate()
        await asyncio.to_thread(process.communicate, timeout=PATIENCE_S)
        await asyncio.to_thread(grid.start, SUPERVISOR)


async def test_a_cluster_drained_for_good_settles_its_jobs_claims_nothing_and_exits(
    customer: Customer, provider: Provider
) -> None:
    grid, gate = customer.grid, Gate(customer.grid)
    running = customer.submit(steps(gate.pass_command), ALPHA)
    await customer.until(running, lambda job: job.status is JobStatus.RUNNING)
    said = await provider.says("drain", "alpha", "--for-good")
    assert f"{CLAIM} is paused" in said and f"job {running}" in said and "ends with status 0" in said
    waiting = customer.submit(steps("echo waited"), ALPHA)
    await customer.until(waiting, lambda job: job.status is JobStatus.META_SCHEDULED)
    async with supervised_by(provider, grid) as supervisor:  # a restarted supervisor continues to drain
        by_hand = await run_now(grid, CLAIM, cluster="alpha")
        assert by_hand["state"]["message"] == "Nothing was claimed: alpha is drained."
        assert (await customer.job(waiting)).status is JobStatus.META_SCHEDULED
        waiter = asyncio.create_task(provider.says("drain", "alpha", "--wait"))
        assert supervisor.poll() is None and not waiter.done()
        gate.open()
        said = await waiter
        assert "was paused already" in said and "1 assigned job is not claimed" in said
        assert (await customer.job(running)).status is JobStatus.FINISHED
        log, _ = await asyncio.to_thread(supervisor.communicate, timeout=PATIENCE_S)
        assert supervisor.returncode == 0, log
        assert "its last job is settled" in log
        assert await _claimed(grid) == []
        assert (await customer.job(waiting)).status is JobStatus.META_SCHEDULED
        said = await provider.says("resume", "alpha")
        assert f"{CLAIM} is resumed" in said and "dps provider serve alpha" in said
    assert (await customer.until(waiting, cold)).status is JobStatus.FINISHED
    for job_id in (running, waiting):
        await customer.settlement(job_id)


async def test_a_closed_grid_claims_nothing_and_finishes_running_jobs(customer: Customer, provider: Provider) -> None:
    grid, gate = customer.grid, Gate(customer.grid)
    running = customer.submit(steps(gate.pass_command), ALPHA)
    await customer.until(running, lambda job: job.status is JobStatus.RUNNING)
    await _pause_in_the_ui(grid)
    assert "was paused already" in await provider.says("drain", "alpha")
    waiting = customer.submit(steps("echo waited"), ALPHA)
    await customer.until(waiting, lambda job: job.status is JobStatus.META_SCHEDULED)
    async with writer_of(grid, "admin") as admin:
        await admin.accept_requests(False)
        try:
            assert "is resumed" in await provider.says("resume", "alpha")
            claim = await run_now(grid, CLAIM, cluster="alpha")
            assert claim["state"]["message"] == "Nothing was claimed: the grid is closed for new jobs."
            gate.open()
            assert (await customer.until(running, cold)).status is JobStatus.FINISHED
            assert (await customer.job(waiting)).status is JobStatus.META_SCHEDULED
        finally:
            await admin.accept_requests(True)
    assert (await customer.until(waiting, cold)).status is JobStatus.FINISHED
    assert "was not paused" in await provider.says("resume", "alpha")


async def _claimed(grid: LocalGrid) -> list[int]:
    async with await Chain.connect(AddressBook.load(grid.book)) as chain, writer_of(grid, "alpha") as alpha:
        return await chain.claimed_jobs(alpha.address)


async def _pause_in_the_ui(grid: LocalGrid) -> None:
    """Pause or resume a work pool, as the switch in Prefect's UI does."""
    found = await deployment(grid, CLAIM)
    async with api(grid) as client:
        for one in found["schedules"]:
            path = f"deployments/{found['id']}/schedules/{one['id']}"
            (await client.patch(path, json={"active": False})).raise_for_status()
