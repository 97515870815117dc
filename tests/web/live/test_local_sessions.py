"""The page of `dps web` keeps its session over reloads and in other tabs, and its texts over restarts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from tests.waiting import until
from tests.web.live.stage import PATIENCE_MS, Stage
from tests.web.live.submitting import go_on, start, submitted
from tests.web.local_web import LocalWeb, lasting_port, local_web

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]

CREDITS = "1000 credits"
START_AGAIN = "If `dps web` was started again, open the newest address that it has printed."
NO_SESSION = "This page has no session. Open the newest address that `dps web` has printed."


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser: Browser) -> AsyncIterator[BrowserContext]:
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    yield context
    await context.close()


async def opened(context: BrowserContext, web: LocalWeb) -> Page:
    """Return the page of the newest address, when it knows the account."""
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
        await page.get_by_role("dialog").get_by_text("The grid's services do not answer.").wait_for()
        await page.get_by_text("You see what was read").get_by_text(START_AGAIN).wait_for()
        await page.goto(f"http://127.0.0.1:{port}/")
        await page.get_by_text(NO_SESSION).first.wait_for()
        assert await stage.jobs() == []
        await start(await opened(context, web))


async def test_what_the_page_keeps_holds_over_restarts(stage: Stage, context: BrowserContext, tmp_path: Path) -> None:
    """The address is new at each start, so the browser's own storage is empty."""
    with local_web(stage.hosted.grid.book, key_of(stage), tmp_path) as web:
        page = await opened(context, web)
        await page.get_by_label("Theme").select_option("dark")
        await page.goto(re.sub(r"#.*", "#/new", page.url))
        await page.get_by_label("Name", exact=True).fill("kept for later")
        async with page.expect_response("**/signer/storage"):
            await page.get_by_role("button", name="Keep on this device").click()
    with local_web(stage.hosted.grid.book, key_of(stage), tmp_path) as web:
        page = await opened(context, web)
        await page.locator("[data-theme=dark]").wait_for()
        await page.goto(re.sub(r"#.*", "#/new", page.url))
        await expect(page.get_by_label("Name", exact=True)).to_have_value("kept for later")


async def test_nothing_is_sent_that_a_restart_would_forget(
    stage: Stage, context: BrowserContext, tmp_path: Path
) -> None:
    """Only the stored note tells the page after a restart that a job was requested."""
    key = key_of(stage)
    file = key.with_name(f"{key.name}.web.json")
    with local_web(stage.hosted.grid.book, key, tmp_path) as web:
        page = await opened(context, web)
        await start(page)
        await until(file.exists)  # the page stores its theme
        file.unlink()
        file.symlink_to(file)
        await go_on(page)
        await page.get_by_role("dialog").get_by_text("`dps web` cannot store this; its log says why.").wait_for()
        assert await stage.jobs() == []
        file.unlink()
        await go_on(page, "Try again")
        await submitted(page, stage)


async def test_a_restart_while_the_signer_sends_makes_no_second_job(
    stage: Stage, context: BrowserContext, tmp_path: Path
) -> None:
    anvil = stage.hosted.grid.anvil

    def is_sent() -> bool:
        return int(anvil.call("eth_getTransactionCount", stage.address, "pending"), 16) > 0

    anvil.call("evm_setAutomine", False)
    try:
        with local_web(stage.hosted.grid.book, key_of(stage), tmp_path) as web:
            page = await opened(context, web)
            await start(page)
            await go_on(page)
            await until(is_sent)
        with local_web(stage.hosted.grid.book, key_of(stage), tmp_path) as web:
            page = await opened(context, web)
            await page.goto(re.sub(r"#.*", "#/new", page.url))
            await page.get_by_text("was interrupted").wait_for()
            await expect(page.get_by_role("button", name="Submit", exact=True)).to_be_disabled()
            anvil.call("evm_setAutomine", True)
            anvil.mine()
            await submitted(page, stage)
    finally:
        anvil.call("evm_setAutomine", True)
        anvil.mine()
