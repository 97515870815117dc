"""The public pages in each of their states, with a recorded grid: accessible, and fit for a phone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.client.replay import Replay
from tests.web.accessibility import AXE, faults_of, overflow_of
from tests.web.pages.browsing import Visit, browser, visiting
from tests.web.pages.public import SHOWN, STATES, pages_of
from tests.web.pages.serving import PageServer, recording

pytestmark = [pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]

NARROWEST, PHONE, DESK = 320, 375, 1280
Looks = tuple[tuple[Literal["light", "dark"], int], ...]
QUICK_LOOKS: Looks = (("light", DESK), ("dark", PHONE))
OTHER_LOOKS: Looks = (("dark", DESK), ("light", PHONE))
WARNINGS = ".notice.warn, .notice.bad"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running() -> AsyncIterator[Browser]:
    async with browser() as one:
        yield one


@asynccontextmanager
async def in_state(running: Browser, state: str, name: str) -> AsyncIterator[Visit]:
    """Yield the page when it shows this state. Checks that it has no error and sends no request to another host."""
    async with PageServer(Replay(recording("empty" if state == "empty" else "day"))) as server:
        recorded = server.grid.recording
        server.held, server.broken = state == "loading", state == "error"
        async with visiting(running, server.url, now=recorded["now"], bypass_csp=True) as visit:
            await visit.open(pages_of(recorded["friend"])[name])
            await visit.page.locator("main h1").first.wait_for()
            await visit.page.get_by_text(SHOWN[name][state]).first.wait_for()
            if state in ("empty", "filled"):
                await visit.page.locator("[aria-busy=true]").first.wait_for(state="detached")
            yield visit
        assert (visit.faults, server.unknown) == ([], [])


def looks_in(state: str, looks: Looks) -> Looks:
    """Return both looks of pages with content. The others differ by one notice, so they get one look each."""
    return {"loading": looks[:1], "error": looks[1:]}.get(state, looks)


@pytest.mark.parametrize(
    "looks", [QUICK_LOOKS, pytest.param(OTHER_LOOKS, marks=pytest.mark.deep)], ids=["half", "other half"]
)
@pytest.mark.parametrize("state", STATES)
async def test_each_state_is_accessible_and_fits(running: Browser, state: str, looks: Looks) -> None:
    wrong: dict[str, list[str]] = {}
    for name in SHOWN:
        async with in_state(running, state, name) as visit:
            await visit.page.add_script_tag(path=AXE)
            for scheme, width in looks_in(state, looks):
                await visit.page.emulate_media(color_scheme=scheme)
                await visit.page.set_viewport_size({"width": width, "height": 900})
                wrong[f"{name} {scheme} {width}"] = await faults_of(visit.page)
            wrong[f"{name} {NARROWEST}"] = await overflow_of(visit.page, NARROWEST)
    assert {place: found for place, found in wrong.items() if found} == {}


async def test_an_outage_is_told_once_and_mends_itself(running: Browser) -> None:
    grid = Replay(recording("day"))
    async with PageServer(grid) as server, visiting(running, server.url, now=grid.recording["now"]) as visit:
        server.broken = True
        await visit.open("/")
        await visit.page.get_by_text(SHOWN["market"]["error"]).wait_for()
        assert await visit.page.locator(WARNINGS).count() == 1
        server.broken = False
        await visit.page.get_by_text(SHOWN["market"]["filled"]).wait_for()
        assert await visit.page.locator(WARNINGS).count() == 0
        assert visit.faults == []
