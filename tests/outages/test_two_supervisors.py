"""Two supervisors of one provider: one leads, the other stands by, and either may be lost at any time."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from fcntl import LOCK_EX, LOCK_NB, flock
from signal import SIGCONT, SIGSTOP

import pytest

from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.clusters import OFFERS
from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.gates import Gate
from tests.grid.runs import FINAL, run_until, runs_of
from tests.grid.support import cold, steps

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

FIRST, SECOND = "supervisor-alpha", "supervisor-alpha-second"
ON_ALPHA = "name=alpha"


@pytest.fixture
async def second(grid: LocalGrid) -> AsyncIterator[str]:
    """A second supervisor of alpha on standby, and its log. After the test the first one leads alone again."""
    (alpha,) = (offer for offer in OFFERS if offer.name == "alpha")
    grid.table.start(replace(grid.roles.supervisor(alpha), name=SECOND, ready=lambda: True))
    await until(lambda: "standing by for" in log(grid, SECOND))
    yield SECOND
    grid.table.stop(SECOND)
    grid.table.log_path(SECOND).unlink()
    await asyncio.to_thread(grid.start, FIRST)


async def test_the_standby_replaces_a_killed_leader(customer: Customer, second: str) -> None:
    grid = customer.grid
    gate = Gate(grid)
    running = [customer.submit(steps(gate.pass_command, "echo outlived it"), ON_ALPHA) for _ in range(3)]
    for job_id in running:
        await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    assert "leading" not in log(grid, second)

    doomed, waiting = running[0], customer.submit(steps("echo came meanwhile"), ON_ALPHA)
    customer.dps("job", "cancel", str(doomed), check=0)
    grid.kill(FIRST)
    assert (await customer.until(waiting, cold)).status is JobStatus.FINISHED
    assert (await customer.until(doomed, cold)).status is JobStatus.CANCELLED
    gate.open()
    for job_id in running[1:]:
        assert (await customer.until(job_id, cold)).status is JobStatus.FINISHED
        assert "outlived it" in customer.dps("job", "logs", str(job_id), "--follow", check=0).stdout
    await settled_and_shown_so(customer, *running, waiting)
    assert log(grid, second).count(": leading ") == 1


@pytest.mark.deep
async def test_a_suspended_leader_finds_itself_replaced_and_stands_by(customer: Customer, second: str) -> None:
    """Its connections stay open, and it continues in the middle of an action."""
    grid = customer.grid
    gate = Gate(grid)
    running = customer.submit(steps(gate.pass_command, "echo outlived it"), ON_ALPHA)
    await customer.until(running, lambda job: job.status is JobStatus.RUNNING)
    away = grid.table.pid(FIRST)
    assert away is not None

    await until(
        lambda: sends_nothing(grid)
    )  # a process that is suspended while it sends a transaction keeps the key's lease
    os.kill(away, SIGSTOP)
    try:
        await until(lambda: ": leading " in log(grid, second))
        waiting = customer.submit(steps("echo came meanwhile"), ON_ALPHA)
        assert (await customer.until(waiting, cold)).status is JobStatus.FINISHED
    finally:
        before = len(log(grid, FIRST))
        os.kill(away, SIGCONT)
    await until(lambda: "standing by for" in log(grid, FIRST)[before:])
    assert grid.table.pid(FIRST) == away, "it continues in the same process"
    crashed = await runs_of(grid, "run_job/alpha", "CRASHED", "FAILED")
    assert running not in [run["parameters"]["job_id"] for run in crashed], "the run now belongs to another process"

    grid.kill(second)
    await until(lambda: ": leading " in log(grid, FIRST)[before:])
    gate.open()
    assert (await customer.until(running, cold)).status is JobStatus.FINISHED
    await settled_and_shown_so(customer, running, waiting)


async def settled_and_shown_so(customer: Customer, *job_ids: int) -> None:
    """Check that each job was submitted to Slurm once, was paid once, and that its run completed."""
    for job_id in job_ids:
        assert (await customer.settlement(job_id)).billed_minutes >= 1
        assert len(submissions(customer.grid, job_id)) == 1
    for run in await runs_of(customer.grid, "run_job/alpha"):
        if run["parameters"]["job_id"] in job_ids:
            ended = await run_until(customer.grid, run["id"], lambda run: run["state"]["type"] in FINAL)
            assert ended["state"]["type"] == "COMPLETED", ended["state"]


def sends_nothing(grid: LocalGrid) -> bool:
    """Return whether the lease of alpha's key is free."""
    with open(f"{grid.keys.file('alpha')}.lease", "a") as lease:
        try:
            flock(lease, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            return False
    return True


def submissions(grid: LocalGrid, job_id: int) -> list[str]:
    """Return the ids of all jobs of this name in alpha's accounting."""
    argv = ["sacct", "-n", "-P", "-X", "-a", "--name", f"dg-{job_id}", "-S", "now-1days", "-o", "JobIDRaw"]
    environment = {**os.environ, **grid.slurm.environment("alpha")}
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout.split()


def log(grid: LocalGrid, name: str) -> str:
    return grid.table.log_path(name).read_text()


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not reached():
            await asyncio.sleep(0.5)
