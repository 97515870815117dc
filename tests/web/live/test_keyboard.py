"""A user submits, follows and cancels a job without a mouse."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Page, expect

from deepgrid.lifecycle.states import JobStatus
from tests.appending import push_log
from tests.web.live.many_jobs_support import run_jobs
from tests.web.live.stage import PATIENCE_MS, Stage, opened

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]

MOST_TABS = 80
FOCUSED = """() => {
  let one = document.activeElement;
  while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
  return one ? (one.getAttribute("aria-label") || one.textContent || "").trim() : "";
}"""


async def tab_to(page: Page, name: str) -> None:
    """Press Tab until the element with this name has the focus, which must be visible."""
    for _ in range(MOST_TABS):
        await page.keyboard.press("Tab")
        if await page.evaluate(FOCUSED) == name:
            outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", f"the focus of {name} cannot be seen"
            return
    raise AssertionError(f"Tab does not lead to {name}")


async def go(page: Page, letters: str, heading: str) -> None:
    for letter in letters:
        await page.keyboard.press(letter)
    await page.get_by_role("heading", name=heading, level=1).wait_for()


async def test_submit_follow_and_cancel(stage: Stage, browser: Browser) -> None:
    async with opened(stage, browser) as page:
        await go(page, "gn", "New job")
        await expect(page.get_by_role("button", name="Submit", exact=True)).to_be_enabled(timeout=PATIENCE_MS)
        await page.locator(".cm-content").focus()
        await page.keyboard.press("Escape")
        await tab_to(page, "Submit")
        await page.keyboard.press("Enter")
        await page.get_by_role("dialog").get_by_text("Contract").wait_for()
        await tab_to(page, "Continue")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/#/jobs/*", timeout=PATIENCE_MS)
        (job_id,) = await stage.jobs()

        await run_jobs(stage, [job_id])
        await push_log(stage.provider.services, job_id, 0, b"seen without a mouse\n")
        await page.keyboard.press("l")
        await page.get_by_text("seen without a mouse").wait_for()

        await go(page, "gj", "Jobs")
        await page.locator(f"tr[data-job='{job_id}'] .badge").wait_for()
        await page.keyboard.press("j")
        await page.keyboard.press("c")
        await page.get_by_role("dialog").get_by_text("Contract").wait_for()
        await tab_to(page, "Continue")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("dialog").get_by_role("button", name="Close").last).to_be_enabled(
            timeout=PATIENCE_MS
        )
        await page.keyboard.press("Escape")
        await expect(page.get_by_text("cancelling")).to_be_visible(timeout=PATIENCE_MS)
        job = await stage.chain.job(job_id)
        assert (job.status, job.has_cancel_request) == (JobStatus.RUNNING, True)
