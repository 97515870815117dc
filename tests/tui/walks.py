"""Walks through all screens, in each of their states. Each step names the screen that appears when everything is read.

The screens are compared with files of these names in `screens/`, and `record` writes them.
"""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input

from deepgrid.client import AsyncGrid, ClientSettings
from deepgrid.tui.grid_app import GridApp
from tests.client.replay import Replay
from tests.client.sample_grid import SMALL, TRAIN, write_key
from tests.tui.support import NARROW, WIDE, lines_of, opened, shows

SCREENS = Path(__file__).parent / "screens"
PORT = re.compile(r"(127\.0\.0\.1:)\d{5}\b")


@dataclass
class Visit:
    """The app on a grid, for a walk."""

    pilot: Pilot[None]
    grid: Replay

    @property
    def app(self) -> GridApp:
        assert isinstance(self.pilot.app, GridApp)
        return self.pilot.app

    @property
    def text(self) -> str:
        """The screen, with the same port in all runs."""
        return PORT.sub(r"\g<1>00000", "\n".join(lines_of(self.app))) + "\n"

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def choose(self, which: str) -> None:
        """Move the cursor in the table of jobs."""
        assert self.app.live is not None
        assert self.app.live.ids is not None
        down = self.app.live.ids.index(self.grid.recording["jobs"][which])
        await self.press("g", *["j"] * down)

    async def type(self, **values: str) -> None:
        """Fill in fields. Then the last one has the focus."""
        for name, value in values.items():
            field = self.app.screen.query_one(f"#{name}", Input)
            field.focus()
            field.value = value
            field.cursor_position = len(value)
            await self.pilot.pause()


Walk = Callable[[Visit], AsyncIterator[str]]


async def _screen(visit: Visit, *keys: str) -> None:
    """Leave the present screen, and open another."""
    await visit.press("escape", *keys)


async def empty(visit: Visit) -> AsyncIterator[str]:
    """Visit a grid without clusters, as a customer without jobs."""
    await opened(visit.pilot)
    yield "jobs-empty"
    await visit.press("p")
    yield "clusters-empty"
    for name, key in (("submit", "s"), ("transfer", "ctrl+t"), ("allowance", "a")):
        await _screen(visit, key)
        yield f"{name}-empty"


async def nothing_yet(visit: Visit) -> AsyncIterator[str]:
    """Visit the screens of a job that has nothing to show yet."""
    await opened(visit.pilot)
    await visit.choose("quiet")
    await visit.press("v")
    yield "job-empty"
    await visit.press("enter")
    yield "log-empty"
    await visit.press("q", "t")
    yield "top-up-empty"


async def loading(visit: Visit) -> AsyncIterator[str]:
    """Visit a slow grid. (The app reads a job before its form opens, so the form to top up has no such state.)"""
    visit.grid.hold()
    yield "jobs-loading"
    await visit.press("p")
    yield "clusters-loading"
    await _screen(visit, "ctrl+t")
    await visit.type(amount="10")
    yield "transfer-loading"
    await _screen(visit, "a")
    await visit.type(amount="10")
    yield "allowance-loading"
    await _screen(visit)
    visit.grid.release()
    await opened(visit.pilot)
    await visit.choose("finished")
    visit.grid.hold()
    await visit.press("v")
    yield "job-loading"
    await visit.press("enter")
    yield "log-loading"
    await visit.press("q", "q", "s")
    await visit.type(file="train.yaml", amount="500")
    yield "submit-loading"


async def failing(visit: Visit) -> AsyncIterator[str]:
    """Visit a grid that does not answer, and enter wrong input."""
    visit.grid.broken = True
    await shows(visit.pilot, "No answer")
    yield "jobs-error"
    await visit.press("p")
    yield "clusters-error"
    visit.grid.broken = False
    await _screen(visit)
    await opened(visit.pilot)
    await visit.choose("running")
    await visit.press("t")
    await visit.type(amount="5000")
    yield "top-up-error"
    await _screen(visit, "ctrl+t")
    await visit.type(to="0x1234", amount="10")
    yield "transfer-error"
    await _screen(visit, "a")
    await visit.type(amount="ten")
    yield "allowance-error"
    await _screen(visit, "s")
    await visit.type(file="wrong.yaml")
    yield "submit-error"
    await _screen(visit)
    visit.grid.broken = True
    await shows(visit.pilot, "No answer")
    yield "jobs-stale"
    await visit.press("v")
    yield "job-error"
    await visit.press("enter")
    yield "log-error"


async def filled(visit: Visit) -> AsyncIterator[str]:
    """Visit all screens of a day on a small grid, and what opens above them."""
    await opened(visit.pilot)
    yield "jobs"
    await visit.choose("running")
    await visit.press("l")
    yield "peek"
    await visit.press("l", "c")
    yield "cancel"
    await visit.press("n", "question_mark")
    yield "keys"
    await visit.press("q", "v")
    yield "job"
    await visit.press("enter")
    yield "log"
    await visit.press("q", "t")
    await visit.type(amount="150")
    yield "top-up"
    await visit.press("enter")
    yield "top-up-question"
    await visit.press("n")
    await _screen(visit, "q")
    await visit.choose("finished")
    await visit.press("v")
    yield "job-finished"
    await visit.press("q", "p")
    await visit.press("j")
    yield "clusters"
    await visit.press("enter")
    yield "cluster"
    await visit.press("escape", "q", "ctrl+t")
    await visit.type(to=visit.grid.recording["friend"], amount="25.5")
    yield "transfer"
    await _screen(visit, "a")
    await visit.type(amount="500")
    yield "allowance"


async def submitting(visit: Visit) -> AsyncIterator[str]:
    """Visit a form with a quote, its confirmation, and the templates."""
    await opened(visit.pilot)
    await visit.press("s")
    await visit.type(file="train.yaml", name="train-lr-0.2", labels="os=linux", amount="400")
    await shows(visit.pilot, "needed")
    yield "submit"
    await visit.type(labels="os=linux")
    await visit.press("enter")
    yield "submit-question"
    await visit.press("n", "ctrl+t")
    yield "templates"


async def wide(visit: Visit) -> AsyncIterator[str]:
    """Visit the screens that use more room."""
    await opened(visit.pilot)
    await visit.choose("running")
    yield "jobs-wide"
    await visit.press("v")
    yield "job-wide"
    await visit.press("enter")
    yield "log-wide"
    await visit.press("q", "q", "s")
    await visit.type(file="train.yaml", amount="400")
    await shows(visit.pilot, "needed")
    yield "submit-wide"
    await _screen(visit, "p")
    await visit.press("j")
    yield "clusters-wide"


@dataclass(frozen=True)
class Plan:
    """A walk on a recorded grid. An outage appears after `patience_s`, only where the walk needs one."""

    recording: str
    walk: Walk
    size: tuple[int, int] = NARROW
    patience_s: float = 600.0


WALKS = {
    "empty": Plan("empty", empty),
    "nothing yet": Plan("day", nothing_yet),
    "loading": Plan("day", loading),
    "failing": Plan("day", failing, patience_s=0.05),
    "filled": Plan("day", filled),
    "submitting": Plan("day", submitting),
    "wide": Plan("day", wide, WIDE),
}

PICTURES = ("jobs", "job", "log", "submit", "clusters", "cluster", "top-up", "transfer", "allowance")


@asynccontextmanager
async def visiting(grid: Replay, plan: Plan, folder: Path) -> AsyncIterator[Visit]:
    """Yield the app of the customer on this grid. `folder` must be the working directory."""
    write_key(folder / "key")
    book = grid.book(folder / "book.json")
    for name, text in (("train", TRAIN), ("wrong", SMALL.replace("tasks: 2", "tasks: none"))):
        (folder / f"{name}.yaml").write_text(text)
    now, settings = grid.recording["now"], ClientSettings(patience_s=plan.patience_s, log_wait_s=1.0)
    time.tzset()
    app = GridApp(lambda: AsyncGrid(folder / "key", book, settings=settings), now=lambda: float(now))
    async with app.run_test(size=plan.size) as pilot:
        yield Visit(pilot, grid)
        grid.release()
