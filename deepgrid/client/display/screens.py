"""Screens to watch a job: one cell of a notebook, which is redrawn, or lines of a terminal or file."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING, Any

from deepgrid.client.display.html import watch_html
from deepgrid.client.display.record import JobEvent
from deepgrid.client.display.text import clock
from deepgrid.client.job_values import LogLine, Remark, Step, ViewMessage
from deepgrid.extras import needs
from deepgrid.plain_text import plain

if TYPE_CHECKING:
    from deepgrid.client.job import AsyncJob

LINES_IN_CELL = 20
REDRAW_S = 0.3  # shortest time between two drawings of a cell


class Screen:
    """Prints a line for each change of a job, and its output as it is."""

    def show_job(self, job: AsyncJob) -> None:
        """Show that the job has changed."""

    def show_change(self, at: datetime, text: str) -> None:
        """Show what has changed, in words. Strangers may have written them."""
        print(f"{clock(at.timestamp())} {plain(text)}", flush=True)

    def show_line(self, text: str) -> None:
        """Show a line of its output, or a sentence about it."""
        print(text, flush=True)

    def close(self) -> None:
        """Nothing more comes."""


def screen_here() -> Screen:
    """Return the screen for where this program runs."""
    return CellScreen() if is_in_notebook() else Screen()


def show_event(screen: Screen, job_id: int, event: JobEvent) -> None:
    match event:
        case LogLine():
            screen.show_line(event.text)
        case ViewMessage():
            screen.show_line(plain(event.text))
        case Step():
            words = f"{event.status.words}: {event.words}" if event.words else event.status.words
            screen.show_change(event.at, f"job {job_id} {words}")
        case Remark():
            screen.show_change(event.at, event.text)


def is_in_notebook() -> bool:
    ipython = sys.modules.get("IPython")  # a notebook's kernel has imported it
    return ipython is not None and getattr(ipython.get_ipython(), "kernel", None) is not None


class CellScreen(Screen):
    """Draws one cell again and again, a few times per second at most."""

    def __init__(self) -> None:
        with needs("notebook"):
            from IPython.display import HTML, display
        self._html: Any = HTML
        self._cell: Any = display(HTML(""), display_id=True)  # type: ignore[no-untyped-call]
        self._lines: deque[str] = deque(maxlen=LINES_IN_CELL)
        self._job: AsyncJob | None = None
        self._due: asyncio.TimerHandle | None = None

    def show_job(self, job: AsyncJob) -> None:
        self._job = job
        self._soon()

    def show_change(self, at: datetime, text: str) -> None:
        pass

    def show_line(self, text: str) -> None:
        self._lines.append(text)
        self._soon()

    def close(self) -> None:
        if self._due is not None:
            self._due.cancel()
        self._draw()

    def _soon(self) -> None:
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(REDRAW_S, self._draw)

    def _draw(self) -> None:
        self._due = None
        if self._job is not None and self._cell is not None:
            self._cell.update(self._html(watch_html(self._job, self._lines)))
