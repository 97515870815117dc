"""From the address that `./run up` prints to the bill of a finished job, in a browser without any extension."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import async_playwright, expect

from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.prefect_ui import CHROMIUM, QUIET

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PATIENCE_MS = PATIENCE_S * 1000


async def test_the_first_job_needs_no_terminal(grid: LocalGrid, customer: Customer) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        try:
            page = await browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(PATIENCE_MS)
            foreign: list[str] = []
            page.on("request", lambda asked: foreign.append(asked.url) if not asked.url.startswith(origin) else None)
            address = grid.web_address()
            origin = address.partition("#")[0]
            await page.goto(address)
            await expect(page.get_by_role("heading", name="Market")).to_be_visible()
            assert "token" not in page.url
            await expect(page.get_by_role("link", name="alpha").first).to_be_visible()
            await page.get_by_role("link", name="New job").first.click()
            submit = page.get_by_role("button", name="Submit", exact=True)
            await expect(submit).to_be_enabled(timeout=PATIENCE_MS)
            await submit.click()
            await page.get_by_role("button", name="Continue").click()
            await page.wait_for_url(re.compile(r"#/jobs/\d+$"), timeout=PATIENCE_MS)
            job_id = int(page.url.rpartition("/")[2])
            await expect(page.get_by_text("finished").first).to_be_visible(timeout=PATIENCE_MS)
            await page.get_by_role("tab", name="Log").click()
            await expect(page.get_by_text("Goodbye")).to_be_visible(timeout=PATIENCE_MS)
            await page.get_by_role("tab", name="Bill").click()
            settled = await customer.settlement(job_id)
            await expect(page.get_by_text(exact(settled.refunded_wei)).first).to_be_visible()
            await expect(page.get_by_text(exact(settled.paid_wei)).first).to_be_visible()
            job = await customer.job(job_id)
            assert (job.status, job.name) == (JobStatus.FINISHED, "hello-world")
            assert foreign == []
        finally:
            await browser.close()


def exact(wei: int) -> str:
    """Return credits as the page writes them."""
    return f"{wei // 10**18}.{wei % 10**18:018d}".rstrip("0").rstrip(".")
