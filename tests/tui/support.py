"""Helpers of the tests of the terminal app: wait for conditions, read the screen as text."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from textual.events import Key
from textual.pilot import Pilot

from deepgrid.client import AsyncJob
from deepgrid.tui.grid_app import GridApp
from deepgrid.tui.widgets.table import Table

WITHIN_S = 60.0
NARROW, WIDE = (80, 24), (140, 40)


def lines_of(app: GridApp) -> list[str]:
    """Return the rows of the screen, without spaces at their ends."""
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]


def text_of(app: GridApp) -> str:
    return "\n".join(lines_of(app))


async def until(pilot: Pilot[None], condition: Callable[[], object], what: str = "") -> None:
    """Wait until the condition is true. A failure shows the screen."""
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}\n{text_of(pilot.app)}"  # type: ignore[arg-type]
        await asyncio.sleep(0.02)
        await pilot.pause()


async def shows(pilot: Pilot[None], *words: str) -> str:
    """Wait until the screen shows all these words. Returns its text."""
    app = pilot.app
    assert isinstance(app, GridApp)
    await until(pilot, lambda: all(word in text_of(app) for word in words), f"the screen never showed {words}")
    return text_of(app)


async def opened(pilot: Pilot[None]) -> None:
    """Wait until the jobs were read."""
    app = pilot.app
    assert isinstance(app, GridApp)
    await until(pilot, lambda: app.live is not None and app.live.ids is not None, "the jobs were not read")


async def choose(pilot: Pilot[None], job: AsyncJob) -> None:
    """Move the cursor of the table to this job."""
    app = pilot.app
    assert isinstance(app, GridApp)
    await until(pilot, lambda: app.live is not None and job.id in (app.live.ids or []), "the job is not in the table")
    assert app.live is not None and app.live.ids is not None
    app.live.refresh()
    await until(pilot, lambda: app.live is not None and job.id in app.live.jobs, "the job was not read")
    await pilot.press("g", *["j"] * app.live.ids.index(job.id))
    assert app.screen.query_one(Table).cursor == app.live.ids.index(job.id)


def type_ahead(app: GridApp, *keys: str) -> None:
    """Press keys that arrive at once, as over a slow line. `Pilot.press` handles one before the next."""
    assert app._driver is not None
    for key in keys:
        event = Key(key, key if len(key) == 1 else LETTERS.get(key))
        event.set_sender(app)
        app._driver.send_message(event)


async def fill(pilot: Pilot[None], **values: str) -> None:
    """Type into fields of a form, which are empty."""
    for name, value in values.items():
        field = pilot.app.screen.query_one(f"#{name}")
        field.focus()
        await until(pilot, lambda field=field: field.has_focus, f"{name} has no focus")  # type: ignore[misc]
        await pilot.press(*[KEYS.get(letter, letter) for letter in value])


KEYS = {" ": "space", "/": "slash", ".": "full_stop", "-": "minus", "=": "equals_sign", "_": "underscore"}
LETTERS = {key: letter for letter, key in KEYS.items()}
