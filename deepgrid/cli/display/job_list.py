"""The list of the customer's jobs, once or with live updates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from rich.live import Live
from rich.text import Text

from deepgrid.cli.display.job_screen import show_jobs
from deepgrid.cli.display.screen import Screen, table_lines
from deepgrid.client.display.record import JOB_COLUMNS, job_row
from deepgrid.client.display.text import printable
from deepgrid.client.grid import AsyncGrid, states_of
from deepgrid.client.job_values import JobChange
from deepgrid.errors import GridError
from deepgrid.lifecycle.job import Job

REREAD_S = 10.0  # without news, so that a change between two reads of the chain is shown too

Listed = tuple[Job, str]


async def newest_jobs(grid: AsyncGrid, states: Sequence[str] | None, limit: int) -> list[Listed]:
    """The newest jobs in these states, each with the name of its cluster."""
    jobs: list[Listed] = []
    async for job in grid.jobs(states):
        jobs.append((job.on_chain, job.cluster))
        if len(jobs) == limit:
            break
    return jobs


async def watch_jobs(grid: AsyncGrid, states: Sequence[str] | None, limit: int) -> None:
    """Show the newest jobs until interrupted: on a terminal as a table that is redrawn, else one line per change."""
    screen = Screen()
    async with _news(grid) as news:
        jobs = await newest_jobs(grid, states, limit)
        if screen.console.is_terminal:
            await _redraw(grid, screen, jobs, news, states, limit)
        show_jobs(screen, jobs)
        wanted = states_of(states)
        while True:
            change = await news.next()
            if wanted is None or change.status in wanted:
                screen.state(change.at.timestamp(), change.status, f"job {change.job_id}")


async def _redraw(
    grid: AsyncGrid, screen: Screen, jobs: list[Listed], news: _News,
    states: Sequence[str] | None, limit: int,
) -> None:  # fmt: skip
    fault = ""
    with Live(console=screen.console, auto_refresh=False) as live:
        while True:
            live.update(_drawn(jobs, fault), refresh=True)
            try:
                await asyncio.wait_for(news.next(), REREAD_S)
                news.forget()
            except TimeoutError:
                pass
            try:
                jobs, fault = await newest_jobs(grid, states, limit), ""
            except GridError as error:
                if not error.transient:
                    raise
                fault = error.message


def _drawn(jobs: Sequence[Listed], fault: str) -> Text:
    """The table, and the fault that keeps it from being up to date."""
    lines = table_lines(list(JOB_COLUMNS), [job_row(job, cluster) for job, cluster in jobs])
    if fault:
        lines.append(Text(f"not up to date: {printable(fault)}"))
    return Text("\n", no_wrap=True, overflow="ellipsis").join(lines)


class _News:
    """The changes of the own jobs from now on, collected while they are read slowly."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[JobChange | Exception] = asyncio.Queue()

    async def next(self) -> JobChange:
        """The next change. Raises the error that ended the collection."""
        change = await self._queue.get()
        if isinstance(change, Exception):
            raise change
        return change

    def forget(self) -> None:
        """Drop the changes that wait, because the jobs are read again. An error is kept."""
        waiting = [self._queue.get_nowait() for _ in range(self._queue.qsize())]
        for one in waiting:
            if isinstance(one, Exception):
                self._queue.put_nowait(one)

    async def collect(self, grid: AsyncGrid) -> None:
        try:
            async for change in grid.watch():
                self._queue.put_nowait(change)
        except Exception as error:  # the reader gets it
            self._queue.put_nowait(error)


@asynccontextmanager
async def _news(grid: AsyncGrid) -> AsyncIterator[_News]:
    news = _News()
    task = asyncio.create_task(news.collect(grid))
    try:
        yield news
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
