"""Money never moves at a price that the user has not seen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import Browser, Page, expect

from tests.chain.grid import approve_waiting
from tests.cli.live import CREDIT, HARDWARE, LABELS, PRICES
from tests.web.live.stage import PATIENCE_MS, Stage, opened

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]

DEARER = replace(PRICES, cpu_wei_per_minute=7 * CREDIT)


async def raise_price(stage: Stage, page: Page) -> None:
    """Raise the price, and wait until the page has seen its block."""
    await stage.provider.writer.register(HARDWARE, DEARER, LABELS)
    await approve_waiting(stage.operator.writer, stage.provider.address)
    head = await stage.chain.head()
    await page.get_by_text(f"Block {head.number}", exact=True).wait_for()


async def panel(page: Page) -> None:
    await page.goto(page.url.split("#")[0] + "#/new")
    submit = page.get_by_role("button", name="Submit", exact=True)
    await expect(submit).to_be_enabled(timeout=PATIENCE_MS)
    await submit.click()
    await page.get_by_role("dialog").get_by_text("Contract").wait_for()


async def test_a_price_that_rose_before_the_first_prompt_is_shown(stage: Stage, browser: Browser) -> None:
    async with opened(stage, browser) as page:
        await panel(page)
        await raise_price(stage, page)
        await page.get_by_role("button", name="Continue").click()
        await page.get_by_text("A price rose. Nothing was signed.").wait_for()
        await expect(page.get_by_text("alpha: 0.628 → 7.128 credits per minute")).to_be_visible()
        assert stage.wallet.prompts == ["eth_requestAccounts"]
        assert await stage.jobs() == []
        await page.get_by_role("button", name="Agree to the new price").click()
        await page.wait_for_url("**/#/jobs/*", timeout=PATIENCE_MS)
        (job_id,) = await stage.jobs()
        assert (await stage.chain.job(job_id)).wishes.max_rate_wei == 7 * CREDIT + 128 * CREDIT // 1000


async def test_a_price_that_rises_between_two_prompts_stops_the_next_one(stage: Stage, browser: Browser) -> None:
    async with opened(stage, browser) as page:
        await panel(page)
        stage.wallet.refuses = {"Permit"}
        await page.get_by_role("button", name="Continue").click()
        await page.get_by_text("You refused this in your wallet.").wait_for()
        prompts = list(stage.wallet.prompts)
        stage.wallet.refuses = set()
        await raise_price(stage, page)
        await page.get_by_role("button", name="Try again").click()
        await page.get_by_text("A price rose. Nothing was signed.").wait_for()
        assert stage.wallet.prompts == prompts
        assert await stage.chain.allowance(stage.address) == 0
