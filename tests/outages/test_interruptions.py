"""Stopping or killing any process of the grid while jobs run loses no job and no credit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from signal import SIGKILL, SIGTERM, Signals

import pytest

from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import Customer
from tests.grid.gates import Gate
from tests.grid.support import cold, in_slurm, steps

pytestmark = [pytest.mark.deep, pytest.mark.timeout(900)]

SUPERVISORS = ("supervisor-alpha", "supervisor-beta")
STEPS = {"prefect-server": "prefect"}  # processes whose step of `up` has another name


@pytest.mark.parametrize(
    ("names", "sig"),
    [
        (("prefect-server",), SIGKILL),
        (SUPERVISORS, SIGKILL),
        ((*SUPERVISORS, "prefect-server"), SIGTERM),
        (("operator",), SIGKILL),
    ],
    ids=lambda value: value.name if isinstance(value, Signals) else "+".join(value),
)
async def test_no_job_and_no_credit_is_lost(customer: Customer, names: tuple[str, ...], sig: Signals) -> None:
    grid = customer.grid
    gate = Gate(grid)
    long = customer.submit(steps(gate.pass_command, "echo outlived the interruption"))
    doomed = customer.submit(steps("sleep 600"))
    for job_id in (long, doomed):
        await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    granted = (await customer.job(long)).granted_minutes

    customer.dps("job", "cancel", str(doomed), check=0)
    customer.dps("job", "topup", str(long), "100", check=0)
    short = [customer.submit(steps("echo submitted meanwhile"))]
    _end(grid, names, sig)
    try:
        short.append(customer.submit(steps("echo submitted while it was down")))
    finally:
        for name in reversed(names):
            await asyncio.to_thread(grid.start, STEPS.get(name, name))
        gate.open()

    topped_up = await customer.until(long, cold)
    assert topped_up.status is JobStatus.FINISHED
    assert topped_up.granted_minutes > granted
    assert (await customer.until(doomed, cold)).status is JobStatus.CANCELLED
    for job_id in short:
        assert (await customer.until(job_id, cold)).status is JobStatus.FINISHED
    for job_id in (long, doomed, *short):
        settled = await customer.settlement(job_id)
        assert settled.billed_minutes >= 1
    assert "outlived the interruption" in customer.dps("job", "logs", str(long), "--follow", check=0).stdout
    await _until(lambda: not in_slurm(customer, doomed))


def _end(grid: LocalGrid, names: tuple[str, ...], sig: Signals) -> None:
    for name in names:
        if sig is SIGKILL:
            grid.kill(name)
        else:
            grid.table.stop(name)


async def _until(reached: Callable[[], bool]) -> None:
    """Wait until the condition holds; the test's own timeout limits this."""
    while not reached():
        await asyncio.sleep(0.5)
