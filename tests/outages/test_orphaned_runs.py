"""A process that is killed during a run leaves no run in state Running, and no concurrency slot in use."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from deployments.onemachine.grid import LocalGrid
from tests.grid.runs import FINAL, api, deployment, run_now, run_until, unscheduled

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

FLOW = "expire_claims/grid"


async def test_a_killed_operator_leaves_no_running_flow_run(grid: LocalGrid) -> None:
    async with unscheduled(grid, FLOW):
        anvil = grid.table.pid("anvil")
        assert anvil is not None
        os.kill(anvil, signal.SIGSTOP)  # stops the run halfway
        try:
            run_id = await _start(grid)
            await run_until(grid, run_id, lambda run: run["state"]["type"] == "RUNNING")
            grid.kill("operator")
        finally:
            os.kill(anvil, signal.SIGCONT)
            await asyncio.to_thread(grid.start, "operator")
        run = await run_until(grid, run_id, lambda run: run["state"]["type"] in FINAL)
        assert (run["state"]["type"], run["state"]["message"]) == ("CRASHED", "Nothing carries it any more.")
        again = await run_now(grid, FLOW)
        assert again["state"]["type"] == "COMPLETED", again["state"]


async def _start(grid: LocalGrid) -> str:
    """Start a run and return its id."""
    found = await deployment(grid, FLOW)
    async with api(grid) as client:
        wanted = {"state": {"type": "SCHEDULED"}}
        made = (await client.post(f"deployments/{found['id']}/create_flow_run", json=wanted)).raise_for_status()
    return str(made.json()["id"])
