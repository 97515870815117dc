"""The operator's machine is lost. A new one with a backup assigns the new jobs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.parties.party_plan import OPERATOR_NAME
from tests.grid.customer import Customer
from tests.grid.support import cold, steps
from tests.scaled.recovery.machines import dps, lose_operator

pytestmark = [pytest.mark.deep, pytest.mark.timeout(1200)]


async def test_a_new_machine_assigns_the_jobs_that_came_meanwhile(customer: Customer, tmp_path: Path) -> None:
    grid, archive = customer.grid, tmp_path / "operator.tar"
    said = await dps(grid, "operator", "backup", OPERATOR_NAME, archive)
    assert "rounds.sqlite" in said and "operator.sqlite" not in said
    await lose_operator(grid, OPERATOR_NAME)
    waiting = customer.submit(steps("true"))
    assert (await customer.job(waiting)).status is JobStatus.PENDING

    said = await dps(grid, "operator", "restore", archive, "--yes")
    assert f"new   {grid.keys.file('operator')}" in said and f"same  {grid.book}" in said
    await asyncio.to_thread(grid.roles.tell_prefect, grid.table.log_path("registration"))
    await asyncio.to_thread(grid.start, "operator")
    assert (await customer.until(waiting, cold)).status is JobStatus.FINISHED
    await customer.settlement(waiting)
