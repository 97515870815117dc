"""A reload during any step of a submission makes one job, with a wallet and with the local signer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Request, Route, expect

from tests.cli.live import CREDIT
from tests.waiting import until
from tests.web.live.stage import PATIENCE_MS, Stage, opened
from tests.web.live.submitting import PERMIT, SEND, SESSION, go_on, start, submitted
from tests.web.local_web import local_web

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]

INTERRUPTED = "was interrupted"


async def only_one(page: Page, stage: Stage) -> None:
    """Check that the page shows the customer's only job, and that nothing more is allowed or locked."""
    await submitted(page, stage)
    assert await stage.chain.balance(stage.address) == 900 * CREDIT
    assert await stage.chain.allowance(stage.address) == 0


@pytest.mark.parametrize(
    ("asked", "approve"),
    [("eth_call", False), (SESSION, False), (PERMIT, False), (SEND, True)],
    ids=["checked", "stored", "allowed", "approved"],
)
async def test_a_reload_before_the_request_locks_nothing(
    stage: Stage, browser: Browser, asked: str, approve: bool
) -> None:
    """The wallet answers late, when the requesting page is gone."""
    async with opened(stage, browser) as page:
        stage.wallet.hangs = {asked}
        await start(page, approve=approve)
        await go_on(page)
        await until(lambda: bool(stage.wallet.held))
        await page.reload()
        stage.wallet.hangs = set()
        stage.wallet.answers.set()
        await start(page, approve=approve)
        assert await stage.jobs() == []
        await go_on(page)
        await only_one(page, stage)


@pytest.mark.parametrize("confirmed", [True, False], ids=["confirmed", "refused"])
async def test_a_request_that_waits_in_the_wallet_comes_before_another(
    stage: Stage, browser: Browser, confirmed: bool
) -> None:
    async with opened(stage, browser) as page:
        stage.wallet.hangs = {SEND}
        await start(page)
        await go_on(page)
        await until(lambda: bool(stage.wallet.held))
        await page.reload()
        await page.get_by_text(INTERRUPTED).wait_for()
        await page.get_by_text("wait in your wallet for an answer").wait_for()
        await page.get_by_text("The interrupted submission comes first.").wait_for()
        await expect(page.get_by_role("button", name="Submit", exact=True)).to_be_disabled()
        stage.wallet.hangs = set()
        stage.wallet.refuses = set() if confirmed else {SEND}
        stage.wallet.answers.set()
        if not confirmed:
            await page.get_by_role("button", name="Forget it").click()
            stage.wallet.refuses = set()
            await start(page)
            await go_on(page)
        await only_one(page, stage)


async def test_a_reload_after_the_request_makes_no_second_job(stage: Stage, browser: Browser) -> None:
    async with opened(stage, browser) as page:
        await start(page)
        stage.hosted.grid.anvil.call("evm_setAutomine", False)
        try:
            await go_on(page)
            await until(lambda: SEND in stage.wallet.prompts)
            await page.wait_for_function("localStorage.getItem('submission')?.includes('transaction')")
            await page.reload()
            await page.get_by_text(INTERRUPTED).wait_for()
        finally:
            stage.hosted.grid.anvil.call("evm_setAutomine", True)
            stage.hosted.grid.anvil.mine()
        await only_one(page, stage)
        assert stage.wallet.prompts.count(SEND) == 1


@pytest_asyncio.fixture(loop_scope="session")
async def local_page(stage: Stage, browser: Browser, tmp_path: Path) -> AsyncIterator[Page]:
    """A page of `dps web`, which signs with the customer's key file."""
    key = stage.wallet.wallet.key_file
    assert key is not None
    with local_web(stage.hosted.grid.book, key, tmp_path) as web:
        page = await browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE_MS)
        await page.goto(web.address())
        await page.locator("main h1").first.wait_for()
        yield page
        await page.close()


def asks_for(request: Request, kind: str) -> bool:
    """Return whether a request of the page asks the signer for this."""
    asked = json.loads(request.post_data or '{"method": ""}')
    typed = asked["params"][1] if asked["method"] == "eth_signTypedData_v4" else "{}"
    return kind in (asked["method"], json.loads(typed).get("primaryType"))


@pytest.mark.parametrize("asked", [SESSION, pytest.param(PERMIT, marks=pytest.mark.deep)])
async def test_a_reload_before_the_local_request_locks_nothing(stage: Stage, local_page: Page, asked: str) -> None:
    held: list[Route] = []

    async def hold(route: Route) -> None:
        if asks_for(route.request, asked):
            held.append(route)
        else:
            await route.continue_()

    await local_page.route("**/signer", hold)
    await start(local_page)
    await go_on(local_page)
    await until(lambda: bool(held))
    await local_page.reload()
    await local_page.unroute("**/signer")
    await start(local_page)
    assert await stage.jobs() == []
    await go_on(local_page)
    await only_one(local_page, stage)


async def test_a_reload_while_the_local_signer_sends_makes_no_second_job(stage: Stage, local_page: Page) -> None:
    anvil = stage.hosted.grid.anvil

    def is_sent() -> bool:
        return int(anvil.call("eth_getTransactionCount", stage.address, "pending"), 16) > 0

    await start(local_page)
    anvil.call("evm_setAutomine", False)
    try:
        await go_on(local_page)
        await until(is_sent)
        await local_page.reload()
        await local_page.get_by_text(INTERRUPTED).wait_for()
        await expect(local_page.get_by_role("button", name="Submit", exact=True)).to_be_disabled()
    finally:
        anvil.call("evm_setAutomine", True)
        anvil.mine()
    await only_one(local_page, stage)
