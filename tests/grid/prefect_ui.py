"""Prefect's UI in a real browser."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Page, async_playwright, expect

from deployments.onemachine.daemons.prefect_server import PrefectServer
from tests.grid.customer import PATIENCE_S

CHROMIUM = "/usr/bin/chromium"
PATIENCE_MS = PATIENCE_S * 1000
# Without these options chromium contacts hosts of its vendor. Tests must stay on this machine.
QUIET = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@asynccontextmanager
async def browser_page(prefect: PrefectServer) -> AsyncIterator[Page]:
    """Yield a page of headless chromium, logged in to Prefect's UI."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        try:
            page = await browser.new_page(viewport={"width": 1400, "height": 900})
            page.set_default_timeout(PATIENCE_MS)
            await log_in(page, prefect)
            yield page
        finally:
            await browser.close()


async def log_in(page: Page, prefect: PrefectServer) -> None:
    """Open the UI and log in with the line from the login file, as `./run up` explains."""
    await page.goto(prefect.ui_url)
    await page.wait_for_url("**/login**", timeout=PATIENCE_MS)
    await page.locator("input").fill(prefect.login_file.read_text(), timeout=PATIENCE_MS)
    await page.get_by_role("button", name="Login").click(timeout=PATIENCE_MS)
    await page.wait_for_url(lambda url: "/login" not in url, timeout=PATIENCE_MS)


async def quick_run(page: Page, deployment_page: str, *, asks: bool) -> None:
    """Press Run and Quick run. If the flow has parameters, press Run again in the form that asks for them."""
    await page.goto(deployment_page)
    await page.get_by_role("button", name="Run", exact=True).click(timeout=PATIENCE_MS)
    await page.get_by_text("Quick run").click(timeout=PATIENCE_MS)
    if asks:
        form = page.get_by_role("dialog")
        await form.get_by_role("button", name="Run", exact=True).click(timeout=PATIENCE_MS)
        await expect(form).to_have_count(0, timeout=PATIENCE_MS)
