"""A cluster's page shows old prices and measured speeds, even if the node has forgotten their states."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from deepgrid.lifecycle.job import Label
from tests.chain.grid import approve_waiting
from tests.cli.live import CREDIT, HARDWARE, LABELS, PRICES
from tests.web.live.stage import PATIENCE_MS, Hosted, Stage, hosted_grid, opened

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]

WINDOW = 10_000
DEARER = replace(PRICES, cpu_wei_per_minute=7 * CREDIT)
PROPOSED, APPROVED = "A new offer was proposed.", "The offer was approved."


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    """A separate chain: 20,000 blocks move its clock by hours."""
    with hosted_grid(tmp_path_factory.mktemp("history")) as hosted:
        yield hosted


async def test_old_prices_are_read_on_demand(stage: Stage, browser: Browser) -> None:
    stage.hosted.grid.anvil.mine(2 * WINDOW)
    for rate in ("100.00", "80.00"):
        await stage.provider.writer.register(HARDWARE, DEARER, (*LABELS, Label("compute.gflops", rate)))
        await approve_waiting(stage.operator.writer, stage.provider.address)
    async with opened(stage, browser) as page:
        await page.evaluate("place => { location.hash = place; }", f"/clusters/{stage.provider.address}")
        history = page.locator("section", has=page.get_by_role("heading", name="History"))
        rows = history.locator("tbody tr")
        await expect(rows).to_have_count(4, timeout=PATIENCE_MS)
        await expect(history.get_by_role("img")).to_have_accessible_name(
            "Measured speed, in GFLOPS: first 100, highest 100, now 80."
        )
        await history.get_by_role("button", name="Read earlier blocks").click()
        await expect(rows).to_have_count(6, timeout=PATIENCE_MS)
        await expect(rows.locator("td:nth-child(2)")).to_have_text([APPROVED, PROPOSED] * 3)
        await expect(rows.locator("td:nth-child(3)")).to_have_text(["7", "7", "7", "7", "0.5", "0.5"])
        await _stays(stage, page, history, "Nothing happened")


async def _stays(stage: Stage, page: Page, history: Locator, emptied: str) -> None:
    """Expect that the words never show while new blocks come."""
    await history.evaluate(
        """(section, words) => {
            window.emptied = 0;
            new MutationObserver(() => { window.emptied += section.textContent.includes(words); })
                .observe(section, { childList: true, subtree: true, characterData: true });
        }""",
        emptied,
    )
    for _ in range(3):
        stage.hosted.grid.anvil.mine()
        head = int(stage.hosted.grid.anvil.call("eth_blockNumber"), 16)
        await expect(page.locator(".block")).to_have_text(f"Block {head}", timeout=PATIENCE_MS)
        await expect(history.locator("tbody tr")).to_have_count(6, timeout=PATIENCE_MS)
    assert await page.evaluate("window.emptied") == 0
