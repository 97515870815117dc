"""An outage is reported once, nothing is lost, and the page is current again without a reload."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.web.live.stage import PATIENCE_MS, Stage, opened

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]

TYPED = "# typed before the outage"
WARNINGS = ".notice.warn, .notice.bad"


async def cut(route: Route) -> None:
    await route.abort("connectionrefused")


async def outage(page: Page, what: str, *, begins: bool) -> None:
    """Cut the page off from the relay or the services, or end that."""
    pattern = {"relay": "**/rpc", "services": "**/v1/**"}[what]
    await (page.route(pattern, cut) if begins else page.unroute(pattern))


PLACES = ["/new", *(pytest.param(place, marks=pytest.mark.deep) for place in ("/", "/jobs", "/wallet", "/grid"))]


@pytest.mark.parametrize("place", PLACES)  # test_node_outage has the others, when the relay loses its node
async def test_the_relay_is_away_for_a_while(stage: Stage, browser: Browser, place: str) -> None:
    async with opened(stage, browser) as page:
        await page.evaluate("place => { location.hash = place; }", place)
        await page.locator("main h1").first.wait_for()
        await page.locator("[aria-busy=true]").first.wait_for(state="detached")
        await outage(page, "relay", begins=True)
        await page.get_by_text("No connection.").wait_for()
        assert await page.locator(WARNINGS).count() == 1
        await outage(page, "relay", begins=False)
        await expect(page.locator(WARNINGS)).to_have_count(0, timeout=PATIENCE_MS)


async def test_the_text_of_the_editor_survives_an_outage_of_the_services(stage: Stage, browser: Browser) -> None:
    async with opened(stage, browser) as page:
        await page.evaluate("location.hash = '/new'")
        editor = page.locator(".cm-content")
        await editor.press("Control+End")
        await page.keyboard.type(TYPED)
        await outage(page, "services", begins=True)
        await page.get_by_role("button", name="Check", exact=True).click()
        await page.get_by_text("The grid's services do not answer. Your text is kept.").wait_for()
        await page.reload()
        await expect(editor).to_contain_text(TYPED, timeout=PATIENCE_MS)
        await outage(page, "services", begins=False)
        await page.get_by_role("button", name="Check", exact=True).click()
        await expect(page.get_by_text("The file is right.")).to_be_visible(timeout=PATIENCE_MS)
