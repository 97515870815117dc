"""A grid with its web app, and the pages of a customer with a wallet."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from playwright.async_api import Browser, Page

from deepgrid.chain.client import Chain
from tests.chain.grid import Grid, running_grid
from tests.cli.live import Party, party, services_of
from tests.web.live.wallet import ANNOUNCE, TestWallet

CHROMIUM = "/usr/bin/chromium"


QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


PATIENCE_MS = 120_000


@dataclass(frozen=True)
class Hosted:
    """The grid with the URL of its web app."""

    grid: Grid
    url: str


@dataclass
class Stage:
    """A grid with its parties, as one test uses it."""

    hosted: Hosted
    chain: Chain
    operator: Party
    provider: Party
    wallet: TestWallet

    @property
    def address(self) -> str:
        return self.wallet.wallet.address

    def customer(self) -> Party:
        """Return the customer at a terminal, with the same key as the wallet."""
        return party(self.chain, self.wallet.wallet)

    async def jobs(self) -> list[int]:
        """Return the ids of the customer's jobs."""
        return await self.chain.jobs_by_customer(self.address)


@contextmanager
def hosted_grid(folder: Path) -> Iterator[Hosted]:
    """Yield a grid with its services, which end with the context."""
    where = ("--port", "0", "--files", str(folder / "files"))
    with running_grid(folder / "chain") as grid, services_of(grid.book, folder, *where) as url:
        yield Hosted(replace(grid, book=grid.book.model_copy(update={"definitions_url": url})), url)


@asynccontextmanager
async def opened(stage: Stage, browser: Browser, *, bypass_csp: bool = False) -> AsyncIterator[Page]:
    """Yield a page with the customer's wallet, connected by a click. Errors of the page fail the test.

    Only checks that load a script of their own bypass the Content-Security-Policy.
    """
    context = await browser.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=bypass_csp)
    context.set_default_timeout(PATIENCE_MS)
    try:
        page, errors = await context.new_page(), []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if "Content Security" in message.text else None)
        await page.expose_function("askWallet", stage.wallet.ask)
        await page.add_init_script(ANNOUNCE)
        await page.goto(f"{stage.hosted.url}/#/wallet")
        await page.get_by_role("button", name="Test wallet").click()
        await page.get_by_text("Allowance of the grid").wait_for()
        yield page
    finally:
        await context.close()
    assert errors == []
