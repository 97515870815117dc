"""The New job page: an example as a form, and labels as chips with the clusters that are left."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from tests.web.live.stage import PATIENCE_MS, Stage, opened

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]

HOSTILE = 'x"\nsteps: [] # '


async def test_a_form_writes_into_the_file(stage: Stage, browser: Browser) -> None:
    async with opened(stage, browser) as page:
        await page.evaluate("location.hash = '/new'")
        await page.get_by_role("button", name="Examples").click()
        await page.get_by_role("button", name="two-nodes").click()
        await page.get_by_label("Tasks").fill("3")
        await expect(page.locator(".cm-content")).to_contain_text("tasks: 3 # form: Tasks", timeout=PATIENCE_MS)
        await page.get_by_text("3 × 2 CPUs, 128 MB per CPU").wait_for()
        await page.get_by_label("Tasks").fill("many")
        await page.get_by_text("This is not a number.").wait_for()
        await expect(page.locator(".cm-content")).to_contain_text("tasks: 3 # form: Tasks")

        await page.get_by_role("button", name="Examples").click()
        await page.get_by_role("button", name="environment").click()
        await page.get_by_label("Who").fill(HOSTILE.replace("\n", " "))
        await page.get_by_role("button", name="Check", exact=True).click()
        await page.get_by_text("The file is right.").wait_for()


async def test_chips_tell_which_clusters_are_left(stage: Stage, browser: Browser) -> None:
    async with opened(stage, browser) as page:
        await page.evaluate("location.hash = '/new'")
        await page.get_by_text("1 of 1 cluster can run it.").wait_for()
        labels = page.get_by_label("Labels the cluster must have")
        await labels.fill("os=linux")  # an existing label becomes a chip at once, like a choice from the list
        await page.get_by_role("button", name="Remove os=linux").wait_for()
        await page.get_by_text("1 of 1 cluster can run it.").wait_for()
        await labels.fill("gpu=h100")
        await labels.press("Enter")
        await page.get_by_text("0 of 1 cluster can run it.").wait_for()
        await page.get_by_text("alpha: has no label gpu==h100").wait_for()
        await page.get_by_role("button", name="Remove gpu=h100").click()
        await page.get_by_text("1 of 1 cluster can run it.").wait_for()
