"""`dps operator doctor` on the running grid finds nothing wrong, and names a deployment that is paused."""

from __future__ import annotations

import asyncio
import os
import subprocess

import pytest

from tests.grid.customer import DPS, PATIENCE_S, Customer
from tests.grid.runs import unscheduled

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def doctor(customer: Customer) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **customer.grid.prefect.environment(), "HOME": str(customer.home)}
    return subprocess.run(
        [str(DPS), "operator", "doctor", "grid"], env=environment, capture_output=True, text=True, check=False,
        timeout=PATIENCE_S,
    )  # fmt: skip


async def test_a_running_grid_is_healthy_and_a_pause_is_named(customer: Customer) -> None:
    healthy = await asyncio.to_thread(doctor, customer)
    assert healthy.returncode == 0, healthy.stdout + healthy.stderr
    assert "deployments are there and not paused." in healthy.stdout
    assert "Prefect makes the diagram of a run in" in healthy.stdout
    assert "BAD" not in healthy.stdout
    async with unscheduled(customer.grid, "reconcile_billing/grid"):
        paused = await asyncio.to_thread(doctor, customer)
    assert (paused.returncode, "Paused: reconcile_billing." in paused.stdout) == (0, True)
