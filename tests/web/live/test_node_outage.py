"""The chain's node is away. Each page says so once, keeps what it shows, and is current again without a reload."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.cli.live import Wire, services_of
from tests.web.live.stage import PATIENCE_MS, Stage, opened

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]

PLACES = ("/", "/new", "/jobs", "/wallet", "/grid")
TYPED = "# typed while the node is away"
WARNINGS = ".notice.warn, .notice.bad"


@asynccontextmanager
async def wired(stage: Stage, folder: Path) -> AsyncIterator[tuple[Stage, Wire]]:
    """Yield the stage, with services of its own whose node can be cut off."""
    book = stage.chain.book
    async with Wire(book.rpc_url) as node:
        services = services_of(book.model_copy(update={"rpc_url": node.url}), folder)
        url = await asyncio.to_thread(services.__enter__)
        try:
            yield replace(stage, hosted=replace(stage.hosted, url=url)), node
        finally:
            await asyncio.to_thread(services.__exit__, None, None, None)


async def show(page: Page, place: str) -> None:
    await page.evaluate("place => { location.hash = place; }", place)
    await page.locator("main h1").first.wait_for()
    await page.locator("[aria-busy=true]").first.wait_for(state="detached")


@pytest.mark.parametrize("away_s", [0, pytest.param(30, marks=pytest.mark.deep)])
async def test_the_node_is_away(stage: Stage, browser: Browser, tmp_path: Path, away_s: int) -> None:
    async with wired(stage, tmp_path) as (there, node), AsyncExitStack() as open_pages:
        pages = {}
        for place in (*PLACES, f"/clusters/{stage.provider.address}"):
            pages[place] = await open_pages.enter_async_context(opened(there, browser))
            await show(pages[place], place)
        await node.cut()
        for place, page in pages.items():
            await page.get_by_text("No connection.").wait_for()
            assert await page.locator(WARNINGS).count() == 1, place
        editor = pages["/new"].locator(".cm-content")
        await editor.press("Control+End")
        await pages["/new"].keyboard.type(TYPED)
        await asyncio.sleep(away_s)
        for place, page in pages.items():
            assert await page.locator(WARNINGS).count() == 1, place
        await node.mend()
        for page in pages.values():
            await expect(page.locator(WARNINGS)).to_have_count(0, timeout=PATIENCE_MS)
        await expect(editor).to_contain_text(TYPED)
