"""The Retry button of the Prefect UI continues a job whose run was stopped."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from playwright.async_api import Page, expect

from deepgrid.lifecycle.states import JobStatus
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.gates import Gate
from tests.grid.prefect_ui import browser_page
from tests.grid.runs import api
from tests.grid.support import cold, steps

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


async def test_retry_of_a_cancelled_run_continues_the_job(customer: Customer) -> None:
    """Cancelling a run stops its carrier and not the job. Adoption would schedule the run again some minutes later."""
    grid, gate = customer.grid, Gate(customer.grid)
    job_id = customer.submit(steps(gate.pass_command, "echo retried"))
    await customer.until(job_id, lambda job: job.status is JobStatus.RUNNING)
    run = await _run_in_state(customer, job_id, "RUNNING")
    async with api(grid) as client:
        wanted = {"state": {"type": "CANCELLING"}}
        (await client.post(f"flow_runs/{run['id']}/set_state", json=wanted)).raise_for_status()
    await _run_in_state(customer, job_id, "CANCELLED")
    gate.open()
    async with browser_page(grid.prefect) as page:
        await _retry(page, f"{grid.prefect.ui_url}/runs/flow-run/{run['id']}")
        job = await customer.until(job_id, cold)
        assert job.status is JobStatus.FINISHED
        again = await _run_in_state(customer, job_id, "COMPLETED")
    assert (again["id"], again["run_count"]) == (run["id"], 2)
    assert (await customer.settlement(job_id)).billed_minutes >= 1
    assert "retried" in customer.dps("job", "logs", str(job_id), check=0).stdout


async def _retry(page: Page, address: str) -> None:
    """Press Retry and confirm."""
    await page.goto(address)
    button = page.get_by_role("button", name="Retry").first
    await expect(button).to_be_visible(timeout=PATIENCE_S * 1000)
    await button.click(timeout=PATIENCE_S * 1000)
    await page.get_by_role("dialog").get_by_role("button", name="Retry").click(timeout=PATIENCE_S * 1000)


async def _run_in_state(customer: Customer, job_id: int, state: str) -> dict[str, Any]:
    """Wait until the job's flow run is in a state of this type, and return the run."""
    wanted = {"flow_runs": {"name": {"like_": f"job {job_id} on "}, "state": {"type": {"any_": [state]}}}}
    deadline = time.monotonic() + PATIENCE_S
    async with api(customer.grid) as client:
        while True:
            answer = (await client.post("flow_runs/filter", json=wanted)).raise_for_status().json()
            if answer:
                return dict(answer[0])
            assert time.monotonic() < deadline, f"the run of job {job_id} does not become {state}"
            await asyncio.sleep(0.5)
