"""The services' machine is lost while jobs run and wait. New ones with a backup serve all of them.

It takes six minutes: for the first five, restored services refuse all signed requests.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from deepgrid.lifecycle.states import JobStatus
from tests.grid.customer import Customer
from tests.grid.gates import Gate
from tests.grid.support import cold, in_slurm, steps
from tests.scaled.recovery.machines import lose_services, services_dps
from tests.waiting import until

pytestmark = [pytest.mark.deep, pytest.mark.timeout(1800)]

PATIENCE_S = 900.0  # five minutes of refusals, and retries with growing pauses


async def test_restored_services_serve_running_and_waiting_jobs(customer: Customer, tmp_path: Path) -> None:
    grid, archive, gate = customer.grid, tmp_path / "services.tar", Gate(customer.grid)
    running = customer.submit(steps("echo before", gate.pass_command, "echo after"))
    await customer.until(running, lambda job: job.status is JobStatus.RUNNING)
    await until(lambda: "before" in output(customer, running), PATIENCE_S)
    await asyncio.to_thread(grid.table.stop, "operator")
    waiting = customer.submit(steps("echo waited"))
    assert "keep it as secret" in await services_dps(grid, "backup", archive)
    uploaded_later = customer.submit(steps("echo never"))

    await lose_services(grid)
    gate.open()
    await until(lambda: in_slurm(customer, running) == "", PATIENCE_S)
    assert "5 minutes from now" in await services_dps(grid, "restore", archive)
    await asyncio.to_thread(grid.start, "services")
    await asyncio.to_thread(grid.start, "operator")

    for job_id in (running, waiting):
        assert (await customer.until(job_id, cold)).status is JobStatus.FINISHED
        await customer.settlement(job_id)
    await until(lambda: "after" in output(customer, running), PATIENCE_S)
    await until(lambda: "waited" in output(customer, waiting), PATIENCE_S)
    assert "before" in output(customer, running)
    lost = await customer.until(uploaded_later, cold)
    assert lost.status is JobStatus.FAILED
    assert (await customer.settlement(uploaded_later)).refunded_wei == lost.locked_wei


def output(customer: Customer, job_id: int) -> str:
    """Return what the log service has of a job's output now. Empty while it does not answer."""
    return customer.dps("job", "logs", str(job_id)).stdout
