"""Retry in the Prefect UI, clicked in a real browser, finishes a job whose run had failed."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from deepgrid.lifecycle.states import JobStatus
from tests.grid.conftest import PATIENCE_S, Customer
from tests.grid.prefect_ui import browser_page
from tests.grid.test_job_life import cold, steps

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

SUPERVISORS = ("supervisor-alpha", "supervisor-beta")


async def test_retry_finishes_the_job(customer: Customer) -> None:
    grid = customer.grid
    for name in SUPERVISORS:
        grid.table.stop(name)
    job_id = customer.submit(steps("echo retried"))
    grid.kill("services")  # the Job Definition service is away for longer than its retries
    await asyncio.gather(*(asyncio.to_thread(grid.start, name) for name in SUPERVISORS))
    run = await _run_in_state(customer, job_id, "FAILED")
    assert (await customer.job(job_id)).status is JobStatus.SCHEDULED

    await asyncio.to_thread(grid.start, "services")
    async with browser_page() as page:
        await _retry(page, f"{grid.prefect.ui_url}/runs/flow-run/{run['id']}")
        job = await customer.until(job_id, cold)
        assert job.status is JobStatus.FINISHED
        again = await _run_in_state(customer, job_id, "COMPLETED")
    assert (again["id"], again["run_count"]) == (run["id"], 2)
    assert (await customer.settlement(job_id)).billed_minutes == 1
    assert "retried" in customer.dps("job", "logs", str(job_id), check=0).stdout


async def _retry(page: Page, address: str) -> None:
    """Press Retry and confirm, as a person does."""
    await page.goto(address)
    button = page.get_by_role("button", name="Retry").first
    await expect(button).to_be_visible(timeout=PATIENCE_S * 1000)
    await button.click()
    await page.get_by_role("dialog").get_by_role("button", name="Retry").click()


async def _run_in_state(customer: Customer, job_id: int, state: str) -> dict[str, Any]:
    """The job's flow run once it is in a state of this type."""
    wanted = {"flow_runs": {"name": {"like_": f"job {job_id} on "}, "state": {"type": {"any_": [state]}}}}
    deadline = time.monotonic() + PATIENCE_S
    async with httpx.AsyncClient(base_url=customer.grid.prefect.ui_url, trust_env=False) as api:
        while True:
            answer = (await api.post("/api/flow_runs/filter", json=wanted)).raise_for_status().json()
            if answer:
                return dict(answer[0])
            assert time.monotonic() < deadline, f"the run of job {job_id} does not become {state}"
            await asyncio.sleep(0.5)
