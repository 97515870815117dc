"""The private pages are accessible in each of their states, fit a phone, and are pictured."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route

from tests.web.accessibility import AXE, faults_of, overflow_of
from tests.web.live.many_jobs_support import request_many
from tests.web.live.stage import Stage, opened

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.asyncio(loop_scope="session")]

DESK, PHONE, NARROWEST = 1280, 375, 320
Looks = tuple[tuple[str, int], ...]
HALF: Looks = (("light", DESK), ("dark", PHONE))
OTHER_HALF: Looks = (("dark", DESK), ("light", PHONE))
READS = "**/rpc"
LINES = "element => Math.round(element.clientHeight / parseFloat(getComputedStyle(element).lineHeight))"
BUSY, UNREADABLE = "still being read from the chain", "No connection."
EMPTY = {
    "/jobs": "No jobs yet",
    "/jobs/999999": "There is no job 999999",
    "/new?uses=os%3Dbeos": "Why the others cannot",
}


EACH_HALF = pytest.mark.parametrize(
    "looks", [HALF, pytest.param(OTHER_HALF, marks=pytest.mark.deep)], ids=["half", "other half"]
)


async def hang(_: Route) -> None:
    """Never answer."""


async def cut(route: Route) -> None:
    await route.abort("connectionrefused")


@asynccontextmanager
async def in_state(page: Page, state: str, place: str, said: str) -> AsyncIterator[None]:
    """Open the page at this place while reads hang or fail."""
    await page.evaluate("location.hash = '/nowhere'")
    await page.get_by_text("No such page").wait_for()
    handler = {"loading": hang, "error": cut}.get(state)
    if handler:
        await page.route(READS, handler)
    await page.evaluate("place => { location.hash = place; }", place)
    await page.locator("main h1").first.wait_for()
    await page.get_by_text(said).first.wait_for()
    yield
    if handler:
        await page.unroute(READS)
        await page.reload()  # end the hanging reads
        await page.add_script_tag(path=AXE)


def name_of(place: str) -> str:
    """Return the page's name: "jobs" for the list, "job" for one of them."""
    page, *rest = place.removeprefix("/").split("?")[0].split("/")
    return "job" if rest else page


async def look(page: Page, name: str, looks: Looks) -> dict[str, list[str]]:
    """Return what is wrong in these palettes and widths. Writes pictures if `WEB_PICTURES` names a folder."""
    wrong = {}
    for theme, width in looks:
        await page.get_by_label("Theme").select_option(theme)
        await page.set_viewport_size({"width": width, "height": 900})
        wrong[f"{name} {theme} {width}"] = await faults_of(page)
        if folder := os.environ.get("WEB_PICTURES"):
            await page.screenshot(path=Path(folder) / f"{name}-{theme}-{width}.png", full_page=True)
    wrong[f"{name} {NARROWEST}"] = await overflow_of(page, NARROWEST)
    if await page.locator("header .name").evaluate(LINES) > 1:
        wrong[f"{name} {NARROWEST}"].append("the app's name is broken into lines")
    await page.set_viewport_size({"width": DESK, "height": 900})
    return wrong


@EACH_HALF
async def test_loading_and_failing_pages(stage: Stage, browser: Browser, looks: Looks) -> None:
    (job_id,) = await request_many(stage, 1, 1)
    wrong: dict[str, list[str]] = {}
    async with opened(stage, browser, bypass_csp=True) as page:
        await page.add_script_tag(path=AXE)
        for place in ("/jobs", f"/jobs/{job_id}", "/new", "/wallet"):
            for state, said, one_look in (("loading", BUSY, looks[:1]), ("error", UNREADABLE, looks[1:])):
                async with in_state(page, state, place, said):
                    wrong |= await look(page, f"{name_of(place)}-{state}", one_look)
    assert {name: found for name, found in wrong.items() if found} == {}


@EACH_HALF
async def test_empty_and_filled_pages(stage: Stage, browser: Browser, looks: Looks) -> None:
    wrong: dict[str, list[str]] = {}
    async with opened(stage, browser, bypass_csp=True) as page:
        await page.add_script_tag(path=AXE)
        for place, said in EMPTY.items():
            async with in_state(page, "empty", place, said):
                wrong |= await look(page, f"{name_of(place)}-empty", looks)
        job_id = (await request_many(stage, 30, 3))[-1]
        filled = {"/jobs": "30 jobs", f"/jobs/{job_id}": "job-29", "/new": "1 of", "/wallet": "job"}
        for place, said in filled.items():
            async with in_state(page, "filled", place, said):
                wrong |= await look(page, f"{name_of(place)}-filled", looks)
    assert {name: found for name, found in wrong.items() if found} == {}
