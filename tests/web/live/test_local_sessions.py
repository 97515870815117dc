"""The page of `dps web` keeps its session over reloads and in other tabs, and says what to do after a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page

from tests.web.live.stage import PATIENCE_MS, Stage
from tests.web.live.submitting import go_on, start, submitted
from tests.web.local_web import LocalWeb, lasting_port, local_web

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

CREDITS = "1000 credits"
NO_SESSION = "This page has no session. Open the newest address that `dps web` has printed."


@pytest.fixture
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    yield context
    await context.close()


async def opened(context: BrowserContext, web: LocalWeb) -> Page:
    """The page of the newest address, when it knows the account."""
    page = await context.new_page()
    await page.goto(web.address())
    await page.get_by_text(CREDITS).wait_for()
    return page


def key_of(stage: Stage) -> Path:
    key = stage.wallet.wallet.key_file
    assert key is not None
    return key


async def test_a_session_holds_over_reloads_and_in_other_tabs(
    stage: Stage, context: BrowserContext, tmp_path: Path
) -> None:
    with local_web(stage.hosted.grid.book, key_of(stage), tmp_path) as web:
        page = await opened(context, web)
        await page.reload()
        await page.get_by_text(CREDITS).wait_for()
        async with context.expect_page() as coming:
            await page.get_by_role("link", name="Wallet").click(modifiers=["Control"])
        tab = await coming.value
        await tab.get_by_text(CREDITS).first.wait_for()
        await page.close()
        await start(tab)
        await go_on(tab)
        await submitted(tab, stage)
        assert await context.cookies() == []


async def test_after_a_restart_the_page_says_what_to_do(stage: Stage, context: BrowserContext, tmp_path: Path) -> None:
    port = lasting_port()
    with local_web(stage.hosted.grid.book, key_of(stage), tmp_path, port) as web:
        page = await opened(context, web)
        await start(page)
    with local_web(stage.hosted.grid.book, key_of(stage), tmp_path, port) as web:
        await go_on(page)
        await page.get_by_role("dialog").get_by_text(NO_SESSION).wait_for()
        await page.reload()
        await page.get_by_text(NO_SESSION).wait_for()
        assert await stage.jobs() == []
        again = await opened(context, web)
        await page.reload()
        await page.get_by_text(CREDITS).wait_for()
        await start(again)
        await go_on(again)
        await submitted(again, stage)
