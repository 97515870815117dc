"""Makes the pictures of the documentation again.

Usage: `python -m tests.web.pages [--grid] [--all FOLDER]`. With `--grid`, it first plays a day on a live grid and
records what the pages read. With `--all`, it writes each page in each theme and width into a folder.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from playwright.async_api import Browser

from tests.chain.anvil import Anvil
from tests.chain.grid import build
from tests.cli.live import Live, services_of
from tests.client.replay import Replay
from tests.client.sample_grid import SampleGrid, sample_grid
from tests.web.pages.browsing import browser, visiting
from tests.web.pages.public import pages_of
from tests.web.pages.serving import PageRecorder, PageServer, recording

PICTURES = Path(__file__).parents[3] / "docs" / "images"
DOCUMENTED = {"web-market": "/", "web-grid": "/grid"}


async def record_day(sample: SampleGrid, name: str) -> None:
    """Record the reads of the public pages."""
    head = await sample.chain.head()
    friend = sample.clusters["gauss"].address
    recorder = PageRecorder(sample.live.address_book(), friend=friend, now=head.timestamp + 4)
    async with recorder, PageServer(recorder) as server, browser() as running:
        for fragment in pages_of(friend).values():
            async with visiting(running, server.url, now=head.timestamp + 4) as visit:
                await visit.open(fragment)
                await visit.page.wait_for_selector("main h1")
                await visit.page.wait_for_selector("[aria-busy]", state="detached")
                await visit.page.wait_for_load_state("networkidle")
    recorder.save(name)


async def record_grid(live: Live, where: Path) -> None:
    async with sample_grid(live, where) as sample:
        await record_day(sample, "empty")
        await sample.play()
        await record_day(sample, "day")


def record() -> None:
    """Play the day on a live grid, and record it."""
    with tempfile.TemporaryDirectory() as name:
        where = Path(name)
        anvil = Anvil(where)
        anvil.start()
        try:
            grid = build(anvil, where / "keys")
            with services_of(grid.book, where) as url:
                book = grid.book.model_copy(update={"definitions_url": url, "logs_url": url})
                asyncio.run(record_grid(Live(grid, book.save(where / "grid.json")), where))
        finally:
            anvil.stop()


async def draw(running: Browser, server: PageServer, fragment: str, file: Path, width: int, scheme: str) -> None:
    """Write a picture of a page."""
    now = server.grid.recording["now"]
    async with visiting(running, server.url, now=now, width=width, scheme=scheme) as visit:
        await visit.open(fragment)
        await visit.page.wait_for_selector("main h1")
        await visit.page.wait_for_selector("[aria-busy]", state="detached")
        await visit.page.screenshot(path=file, full_page=True)
        assert not visit.faults, visit.faults


async def main(everything: Path | None) -> None:
    """Write the pictures."""
    async with PageServer(Replay(recording("day"))) as server, browser() as running:
        if everything is None:
            for name, fragment in DOCUMENTED.items():
                await draw(running, server, fragment, PICTURES / f"{name}.png", 1280, "light")
            return
        for name, fragment in pages_of(server.grid.recording["friend"]).items():
            for width in (1440, 375, 320):
                for scheme in ("light", "dark"):
                    await draw(running, server, fragment, everything / f"{name}-{width}-{scheme}.png", width, scheme)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--all", type=Path)
    chosen = parser.parse_args()
    if chosen.grid:
        record()
    asyncio.run(main(chosen.all))
