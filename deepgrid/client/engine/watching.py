"""Shows a job until it is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from deepgrid.client.display.screens import Screen
from deepgrid.client.display.shown import ShownJob
from deepgrid.client.engine.connection import Connection
from deepgrid.client.values import LogLine
from deepgrid.errors import GridError

LATE_OUTPUT_S = 45.0  # how long it waits for the rest of the output; the services close a log after 30 s


class WatchedJob(ShownJob, Protocol):
    """A job that can be read again."""

    @property
    def refresh(self) -> Callable[[], Awaitable[object]]: ...


async def show_live(
    connection: Connection, job: WatchedJob, output: AsyncIterator[LogLine], screen: Screen
) -> None:  # fmt: skip
    """Show the job and its output on the screen, until the job is over. Outages only delay it."""
    try:
        async for line in _news(connection, job, output):
            if line is None:
                screen.show_job(job)
            else:
                screen.show_line(line)
    finally:
        screen.close()


async def _news(connection: Connection, job: WatchedJob, output: AsyncIterator[LogLine]) -> AsyncIterator[str | None]:
    """A line of output, or None when the job may have changed. It ends after the job and its output."""
    news: asyncio.Queue[str | Exception | None] = asyncio.Queue()
    work = asyncio.create_task(_follow(connection, job, output, news), name=f"watch of job {job.id}")
    work.add_done_callback(lambda task: news.put_nowait(_Ended() if task.cancelled() else task.exception() or _Ended()))  # type: ignore[arg-type]
    try:
        while not isinstance(item := await news.get(), _Ended):
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


class _Ended(Exception):
    """Nothing more comes."""


async def _follow(
    connection: Connection, job: WatchedJob, output: AsyncIterator[LogLine], news: asyncio.Queue[str | Exception | None]
) -> None:
    reading = asyncio.create_task(_read(output, news)) if connection.has_key else None
    try:
        async for _ in connection.poller.versions(job.id):
            await connection.patiently(job.refresh, forever=True)
            news.put_nowait(None)
        if reading is not None and job.started is not None:
            await asyncio.wait({reading}, timeout=LATE_OUTPUT_S)
    finally:
        if reading is not None:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def _read(output: AsyncIterator[LogLine], news: asyncio.Queue[str | Exception | None]) -> None:
    try:
        async for line in output:
            news.put_nowait(line.text)
    except GridError as error:
        news.put_nowait(f"The job's output cannot be shown: {error}")
