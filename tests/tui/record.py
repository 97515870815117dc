"""Makes the expected screens and the pictures of the documentation again.

Usage: `python -m tests.tui.record [--grid] [WALK...]`, by default for all walks. With `--grid`, it first plays a day on
a live grid, and records what the app reads of it. Check the diff before you commit it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, chdir
from pathlib import Path

from tests.chain.anvil import Anvil
from tests.chain.grid import build
from tests.cli.live import Live, services_of
from tests.client.replay import Recorder, Replay
from tests.client.sample_grid import SampleGrid, sample_grid
from tests.tui.pictures import PICTURE_FOLDER, picture_of
from tests.tui.walks import PICTURES, SCREENS, WALKS, Visit, visiting

STILL_S = 1.5  # a screen that does not change for this long is complete


async def settled(visit: Visit) -> str:
    """Return the screen when it does not change any more."""
    text, since = visit.text, time.monotonic()
    while time.monotonic() - since < STILL_S:
        await asyncio.sleep(0.1)
        await visit.pilot.pause()
        if visit.text != text:
            text, since = visit.text, time.monotonic()
    return text


@asynccontextmanager
async def folder() -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory() as name, chdir(name):
        yield Path(name)


async def record_day(sample: SampleGrid, name: str, jobs: dict[str, int]) -> None:
    """Record the reads of all walks of this recording."""
    head = await sample.chain.head()
    book = sample.live.address_book()
    friend = sample.clusters["gauss"].address
    async with Recorder(book, jobs=jobs, friend=friend, now=head.timestamp + 4) as recorder:
        recorder.ahead_s = sample.ahead_s
        for plan in WALKS.values():
            if plan.recording == name:
                async with folder() as where, visiting(recorder, plan, where) as visit:
                    async for screen in plan.walk(visit):
                        print(f"recorded for {screen}")
                        if not recorder.broken and recorder.flows:
                            await settled(visit)
                recorder.broken = False
    recorder.save(name)


async def record_grid(live: Live, where: Path) -> None:
    async with sample_grid(live, where) as sample:
        await record_day(sample, "empty", {})
        await record_day(sample, "day", await sample.play())


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


async def draw(walks: list[str]) -> None:
    """Write the screens and the pictures of these walks."""
    for plan in map(WALKS.__getitem__, walks):
        async with Replay.of(plan.recording) as grid:
            async with folder() as where, visiting(grid, plan, where) as visit:
                async for screen in plan.walk(visit):
                    (SCREENS / f"{screen}.txt").write_text(await settled(visit))
                    if screen in PICTURES:
                        (PICTURE_FOLDER / f"{screen}.svg").write_text(picture_of(visit.app))
                    print(f"drew {screen}")
            assert not grid.unknown, "Record the grid again: " + "\n".join(grid.unknown)


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    os.environ.pop("NO_COLOR", None)
    if "--grid" in sys.argv:
        record()
    SCREENS.mkdir(exist_ok=True)
    PICTURE_FOLDER.mkdir(parents=True, exist_ok=True)
    asyncio.run(draw([name for name in sys.argv[1:] if name != "--grid"] or [*WALKS]))
