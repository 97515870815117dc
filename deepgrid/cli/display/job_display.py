"""Prints jobs: the table of jobs, once or live; one job with all its facts; the events of its live view."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from rich.live import Live
from rich.text import Text

from deepgrid.cli.display.screen import STYLES, Screen, json_text, table_lines
from deepgrid.client.display.record import (
    JOB_COLUMNS,
    JobEnd,
    JobEvent,
    JobRecord,
    bill_rows,
    facts,
    job_as_json,
    job_row,
    life,
    transaction_rows,
)
from deepgrid.client.grid import AsyncGrid
from deepgrid.client.job import AsyncJob
from deepgrid.client.job_values import JobChange, LogLine, Remark, Step
from deepgrid.client.sweep.job_history import states_of
from deepgrid.errors import GridError
from deepgrid.lifecycle.job import Job
from deepgrid.plain_text import plain

REREAD_S = 10.0  # without news, so that a change between two reads of the chain is shown too
CHANGEABLE = ("status", "cancel_requested", "granted_minutes", "locked_wei", "released_wei", "held_until")

Listed = tuple[Job, str]


def show_jobs(screen: Screen, jobs: Iterable[Listed]) -> None:
    screen.table(list(JOB_COLUMNS), [job_row(job, cluster) for job, cluster in jobs])


def show_record(
    screen: Screen, record: JobRecord, noted: Mapping[str, Any] | None = None, used: Iterable[tuple[str, str]] = ()
) -> None:
    job = record.job
    screen.line(
        (f"job {job.id}", "bold"), f"  {job.name}  ", (job.status.words.upper(), STYLES.get(job.status, "bold"))
    )
    screen.pairs([*facts(record), *used, *_note_pairs(noted or {})])
    screen.heading("Life")
    for event in life(record):
        show_event(screen, event)
    if record.settlement is None:
        _show_transactions(screen, record)
    else:
        show_bill(screen, record)


def _note_pairs(noted: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the tags, the note and the sweep of a job as facts."""
    words = " ".join(f"{name}={value}" if value else name for name, value in noted.get("tags", {}).items())
    pairs = [("tags", words), ("note", noted.get("note", "")), ("sweep", noted.get("sweep", "")[:8])]
    return [(name, value) for name, value in pairs if value]


def show_event(screen: Screen, event: JobEvent) -> None:
    match event:
        case Step():
            screen.state(event.at.timestamp(), event.status, event.words)
        case Remark():
            screen.remark(f"{event.kind}: {event.text}", event.at.timestamp())
        case LogLine():
            screen.output(event)
        case JobEnd():
            show_bill(screen, event.record)
        case _:
            screen.remark(event.text, event.at.timestamp())


def show_bill(screen: Screen, record: JobRecord) -> None:
    """Print the division of the locked credits, and the job's transactions."""
    if record.settlement is not None:
        screen.heading("Bill (credits)")
        screen.pairs(bill_rows(record.job, record.settlement))
        _show_transactions(screen, record)


def _show_transactions(screen: Screen, record: JobRecord) -> None:
    screen.heading("Transactions")
    screen.pairs(transaction_rows(record.history))


async def newest_jobs(
    grid: AsyncGrid, states: Sequence[str] | None, limit: int, tags: Sequence[str] | None = None
) -> list[Listed]:
    """Return the newest jobs in these states, each with the name of its cluster."""
    jobs: list[Listed] = []
    async for job in grid.jobs(states, tags=tags):
        jobs.append((job.on_chain, job.cluster))
        if len(jobs) == limit:
            break
    return jobs


async def watch_jobs(
    grid: AsyncGrid, states: Sequence[str] | None, limit: int, tags: Sequence[str] | None = None
) -> None:
    """Show the newest jobs until interrupted: a live table on a terminal, otherwise one line per change."""
    screen, read = Screen(), partial(newest_jobs, grid, states, limit, tags)
    changes: asyncio.Queue[JobChange] = asyncio.Queue()
    async with asyncio.TaskGroup() as group:
        group.create_task(_collect(grid, changes))
        jobs = await read()
        if screen.console.is_terminal:
            await _redraw(screen, jobs, changes, read)
        show_jobs(screen, jobs)
        wanted = states_of(states)
        while True:
            change = await changes.get()
            is_listed = not tags or change.job_id in {job.id for job, _ in await read()}
            if is_listed and (wanted is None or change.status in wanted):
                screen.state(change.at.timestamp(), change.status, f"job {change.job_id}")


async def _collect(grid: AsyncGrid, changes: asyncio.Queue[JobChange]) -> None:
    """Collect the changes of the customer's jobs from now on, while the slow read of all jobs runs."""
    async for change in grid.watch():
        changes.put_nowait(change)


async def _redraw(
    screen: Screen, jobs: list[Listed], changes: asyncio.Queue[JobChange], read: Callable[[], Awaitable[list[Listed]]]
) -> None:
    fault = ""
    with Live(console=screen.console, auto_refresh=False) as live:
        while True:
            live.update(_live_table(jobs, fault), refresh=True)
            with suppress(TimeoutError):
                await asyncio.wait_for(changes.get(), REREAD_S)
            while not changes.empty():  # all jobs are read again
                changes.get_nowait()
            try:
                jobs, fault = await read(), ""
            except GridError as error:
                if not error.transient:
                    raise
                fault = error.message


def _live_table(jobs: Sequence[Listed], fault: str) -> Text:
    """Return the table, and the fault that keeps it from being up to date."""
    lines = table_lines(list(JOB_COLUMNS), [job_row(job, cluster) for job, cluster in jobs])
    if fault:
        lines.append(Text(f"not up to date: {plain(fault)}"))
    return Text("\n", no_wrap=True, overflow="ellipsis").join(lines)


def change_as_json(job: AsyncJob) -> str:
    """Return what a change has made of a job, with the names of `dps job get --json`, and its transaction."""
    now = job_as_json(job.on_chain, "")
    changed = {name: now[name] for name in CHANGEABLE}
    return json_text({"job": job.id, **changed, "transaction": job.last_transaction})
