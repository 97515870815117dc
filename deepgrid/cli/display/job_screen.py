"""Prints jobs: the table of jobs, one job with all its facts, and the events of its live view."""

from __future__ import annotations

from collections.abc import Iterable

from deepgrid.cli.display.screen import STYLES, Screen
from deepgrid.client.display.record import (
    JOB_COLUMNS,
    JobEnd,
    JobEvent,
    JobRecord,
    bill_rows,
    facts,
    job_row,
    life,
    transaction_rows,
)
from deepgrid.client.job_values import LogLine, Remark, Step
from deepgrid.lifecycle.job import Job


def show_jobs(screen: Screen, jobs: Iterable[tuple[Job, str]]) -> None:
    """Print jobs, each with the name of its cluster, as a table."""
    screen.table(list(JOB_COLUMNS), [job_row(job, cluster) for job, cluster in jobs])


def show_record(screen: Screen, record: JobRecord) -> None:
    """Print one job as text."""
    job = record.job
    screen.line(
        (f"job {job.id}", "bold"), f"  {job.name}  ", (job.status.words.upper(), STYLES.get(job.status, "bold"))
    )
    screen.pairs(facts(record))
    screen.heading("Life")
    for event in life(record):
        show_event(screen, event)
    if record.settlement is None:
        _show_transactions(screen, record)
    else:
        show_bill(screen, record)


def show_event(screen: Screen, event: JobEvent) -> None:
    """Print one event of a job."""
    match event:
        case Step():
            screen.state(event.at.timestamp(), event.status, event.words)
        case Remark():
            screen.remark(f"{event.kind}: {event.text}", event.at.timestamp())
        case LogLine():
            screen.output([event.text])
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
