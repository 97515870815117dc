"""Shows a job until it is over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from deepgrid.client.display.screens import Screen
from deepgrid.client.display.text import printable
from deepgrid.client.engine.connection import Connection
from deepgrid.client.events import JobEvent
from deepgrid.client.values.returned import LogLine, Remark, Step, ViewMessage
from deepgrid.client.values.shown import ShownJob


class WatchedJob(ShownJob, Protocol):
    """A job that can be read again."""

    @property
    def refresh(self) -> Callable[[], Awaitable[object]]: ...


async def show_live(connection: Connection, job: WatchedJob, events: AsyncIterator[JobEvent], screen: Screen) -> None:
    """Show the events of a job on the screen, until the job is over. Outages only delay it."""
    try:
        async for event in events:
            match event:
                case LogLine():
                    screen.show_line(event.text)
                case ViewMessage():
                    screen.show_line(printable(event.text))
                case Step():
                    words = f"{event.status.words}: {event.words}" if event.words else event.status.words
                    screen.show_change(event.at, f"job {job.id} {words}")
                case Remark():
                    screen.show_change(event.at, event.text)
            if not isinstance(event, LogLine | ViewMessage):
                await connection.patiently(job.refresh, forever=True)
                screen.show_job(job)
    finally:
        screen.close()
