"""A headless chromium that records faults: errors, reports of the policy, requests to other hosts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from playwright.async_api import Browser, ConsoleMessage, Page, Request, async_playwright

from tests.grid.prefect_ui import CHROMIUM, QUIET

PATIENCE_MS = 60_000


@dataclass
class Visit:
    """A page, and the faults that its browser saw."""

    page: Page
    url: str
    faults: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("console", self._console)
        self.page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text or "TrustedHTML" in message.text:
            self.faults.append(message.text)

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self.url, "data:")):
            self.faults.append(f"request to {request.url}")

    async def open(self, fragment: str) -> None:
        await self.page.goto(f"{self.url}#{fragment}")


@asynccontextmanager
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        try:
            yield running
        finally:
            await running.close()


@asynccontextmanager
async def visiting(
    running: Browser, url: str, *, now: int, width: int = 1280, scheme: str = "light", bypass_csp: bool = False
) -> AsyncIterator[Visit]:
    """Yield a new page of the browser, at a fixed time."""
    context = await running.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce", bypass_csp=bypass_csp, locale="en-GB", timezone_id="UTC",
    )  # fmt: skip
    context.set_default_timeout(PATIENCE_MS)
    try:
        page = await context.new_page()
        await page.clock.set_fixed_time(now)
        visit = Visit(page, url)
        visit.watch()
        yield visit
    finally:
        await context.close()
