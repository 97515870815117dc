"""Steps of a submission in the browser."""

from __future__ import annotations

import re

from playwright.async_api import Page, TimeoutError, expect

from tests.web.live.stage import PATIENCE_MS, Stage

SESSION, PERMIT, SEND = "Session", "Permit", "eth_sendTransaction"
JOB_PAGE = re.compile(r"#/jobs/\d+$")


async def start(page: Page, *, approve: bool = False) -> None:
    """Go to New job and open the panel."""
    await page.goto(re.sub(r"#.*", "#/new", page.url))
    if approve:
        await page.get_by_label("Approve by a transaction").check()
    submit = page.get_by_role("button", name="Submit", exact=True)
    try:
        await expect(submit).to_be_enabled(timeout=PATIENCE_MS)
    except AssertionError as error:
        hint = await submit.locator("xpath=..").inner_text()
        raise AssertionError(f"the page takes no submission: {hint}") from error
    await submit.click()
    try:
        await page.get_by_role("dialog").get_by_text("Contract").wait_for()
    except TimeoutError as error:
        raise AssertionError(f"Submit opened no panel: {await page.locator('main').inner_text()}") from error


async def go_on(page: Page, name: str = "Continue") -> None:
    """Press a button of the panel."""
    await page.get_by_role("dialog").get_by_role("button", name=name).click()


async def submitted(page: Page, stage: Stage) -> int:
    """Return the id of the one job, when the page shows it."""
    await page.wait_for_url(JOB_PAGE, timeout=PATIENCE_MS)
    (job_id,) = await stage.jobs()
    assert page.url.endswith(f"/jobs/{job_id}")
    return job_id
