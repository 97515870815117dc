"""Each page is accessible in both palettes, fits a phone and a desk, and asks nothing of another host."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Page

from tests.web.accessibility import AXE, faults_of, overflow_of
from tests.web.live.stage import Stage, opened

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]

PHONE, DESK = 375, 1280
NARROWEST = 320
Looks = tuple[tuple[str, int], ...]
HALF: Looks = (("light", DESK), ("dark", PHONE))
OTHER_HALF: Looks = (("dark", DESK), ("light", PHONE))


def places(stage: Stage) -> list[str]:
    """Return a fragment of each page, including a page that shows that nothing is there."""
    return ["/", f"/clusters/{stage.provider.address}", "/new", "/jobs", "/jobs/999999", "/wallet", "/grid", "/nowhere"]


async def show(page: Page, place: str) -> None:
    await page.evaluate("place => { location.hash = place; }", place)
    await page.locator("main h1").first.wait_for()
    await page.locator("[aria-busy=true]").first.wait_for(state="detached")


@pytest.mark.parametrize("looks", [HALF, pytest.param(OTHER_HALF, marks=pytest.mark.deep)], ids=["half", "other half"])
async def test_each_page_is_accessible_and_fits(stage: Stage, browser: Browser, looks: Looks) -> None:
    async with opened(stage, browser, bypass_csp=True) as page:
        await page.add_script_tag(path=AXE)
        wrong: dict[str, list[str]] = {}
        for place in places(stage):
            for theme, width in looks:
                await page.get_by_label("Theme").select_option(theme)
                await page.set_viewport_size({"width": width, "height": 900})
                await show(page, place)
                wrong[f"{place} {theme} {width}"] = await faults_of(page)
            wrong[f"{place} {NARROWEST}"] = await overflow_of(page, NARROWEST)
        assert {place: found for place, found in wrong.items() if found} == {}


async def test_nothing_is_asked_of_another_host(stage: Stage, browser: Browser) -> None:
    async with opened(stage, browser) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await page.reload()
        for place in places(stage):
            await show(page, place)
        foreign = [url for url in asked if not url.startswith((stage.hosted.url, "data:"))]
        assert (foreign, len(asked) > len(places(stage))) == ([], True)
