"""`dps job`: show jobs, read their output, cancel them, buy them more time."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, NoReturn

import typer

from deepgrid.billing.credits import format_credits
from deepgrid.cli.access.confirmation import Force, confirm
from deepgrid.cli.access.grid import amount, as_customer, as_sender
from deepgrid.cli.display.job_display import change_as_json, newest_jobs, show_jobs, show_record, watch_jobs
from deepgrid.cli.display.log_records import print_records
from deepgrid.cli.display.screen import Screen, print_json
from deepgrid.cli.error_boundary import FAILED, interruptions_explained, runs
from deepgrid.cli.options import DEFAULT_KEY, AsJson, BookFile, InWei, JobId, KeyFile, NoApprove, NoTimestamp
from deepgrid.cli.standard_streams import is_file, print_result, with_transaction, write_bytes
from deepgrid.cli.verbs import into_job, kept_output
from deepgrid.cli.verbs.bills.receipt import job_receipt, use_of
from deepgrid.cli.verbs.repeat.job_verbs import again, job_file, notes_of, tag_job
from deepgrid.cli.verbs.repeat.repeat_options import WithTag
from deepgrid.client.display.record import job_as_json, record_as_json
from deepgrid.client.display.text import plural
from deepgrid.client.display.use_graph import use_rows
from deepgrid.client.job import AsyncJob
from deepgrid.client.job_values import credits_of, seconds_of
from deepgrid.errors import InputError

MOST_MINUTES = 60 * 24 * 366 * 10
PANIC_REASON = "an administrator of the grid ended the job"

job = typer.Typer(help="Show jobs, read their output, cancel them, buy them more time.", no_args_is_help=True)


@job.command("get")
@runs
async def get(number: JobId, as_json: AsJson = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Show a job: its state, why it waits, its history and its bill."""
    async with as_customer(key, book, asks_services=True) as grid:
        found = await grid.job(number)
        record = await found.record()
        own = found.customer == grid.address
        noted, (use, history) = (await notes_of(found), await use_of(found)) if own else ({}, (None, None))
    if as_json:
        used = {"resource_use": asdict(use)} if use is not None and use.words else {}
        over_time = {"use_over_time": [asdict(sample) for sample in history.samples]} if history else {}
        print_json({**record_as_json(record), **noted, **used, **over_time})
    else:
        show_record(Screen(), record, noted, use_rows(use, history))


@job.command("list")
@runs
async def list_jobs(
    limit: Annotated[int, typer.Option("--limit", "-n", help="Number of jobs, newest first.", min=1)] = 20,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", "-s", metavar="STATES", help="Only jobs in these states, such as running,pending."),
    ] = None,
    tag: WithTag = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show changes as they happen, until interrupted.")
    ] = False,
    as_json: AsJson = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """List your newest jobs."""
    if watch and as_json:
        raise InputError("--watch prints no JSON.", next_step="Leave out --watch or --json.")
    states = [word for text in state or () for word in text.split(",")] or None
    async with as_customer(key, book) as grid:
        if watch:
            await watch_jobs(grid, states, limit, tag)
        jobs = await newest_jobs(grid, states, limit, tag)
    if as_json:
        print_json([job_as_json(job, cluster) for job, cluster in jobs])
    elif jobs:
        show_jobs(Screen(), jobs)
    elif states or tag:
        what = " and ".join([*(["in these states"] if states else []), *(["with these tags"] if tag else [])])
        typer.echo(f"You have no jobs {what}.", err=True)
    else:
        typer.echo("You have no jobs yet. Submit one with `dps submit FILE --credits AMOUNT`.", err=True)


@job.command("logs")
@runs
async def logs(
    number: JobId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue until the job is over.")] = False,
    tail: Annotated[
        int | None, typer.Option("--tail", "-n", metavar="N", help="Begin with the last N lines.", min=0)
    ] = None,
    whole: Annotated[
        bool, typer.Option("--all", help="Wait for all of it, and say whether it is whole; if not, exit with 1.")
    ] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print the bytes as they were written. This is the default into a file.")
    ] = False,
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Print when each line was written.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line of the output.")] = False,
    no_timestamp: NoTimestamp = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Print a job's output. With --follow, each line has the time at which it was written."""
    if whole and (follow or tail is not None):
        raise InputError("--all prints the whole output.", next_step="Leave out --follow and --tail.")
    if raw and (timestamps or tail is not None):
        raise InputError("--raw prints bytes, not lines.", next_step="Leave out --tail and --timestamps.")
    if as_json and (raw or timestamps or tail is not None):
        raise InputError("--json prints all lines.", next_step="Leave out --raw, --timestamps and --tail.")
    as_bytes = raw or (is_file(sys.stdout) and not (follow or timestamps or as_json or tail is not None))
    aside = Screen(to_stderr=True)
    screen = Screen(timestamps=timestamps or (follow and not no_timestamp), dates=timestamps)
    async with as_customer(key, book, asks_services=True) as grid:
        job = await grid.job(number)
        before, printed = job.status.words, 0
        if as_json:
            printed = await print_records(job, follow=follow or whole, say=aside.remark)
        elif as_bytes:
            async for data in job.output(follow or whole, say=aside.remark):
                write_bytes(data)
                printed += len(data)
        else:
            async for line in job.logs(follow or whole, tail=tail, say=aside.remark):
                screen.output(line)
                printed += 1
        if whole:
            await _end_of_whole(job, aside, printed if as_bytes or as_json else None)
        if not printed and tail != 0:
            aside.remark(f"job {number} is {before}; it has no stored output")


async def _end_of_whole(job: AsyncJob, aside: Screen, printed: int | None) -> NoReturn:
    """Say how complete the log is, and end with a status that says it too. `printed` bytes of it were printed."""
    status = await job.log_status()
    is_whole = status.is_whole and printed in (None, status.size)
    if is_whole or printed is not None:
        aside.remark(status.words if is_whole else f"{printed or 0:,} bytes were printed. {status.words}")
    raise typer.Exit(0 if is_whole else FAILED)


@job.command("cancel")
@runs
async def cancel(number: JobId, as_json: AsJson = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Cancel a job. Credits that it did not use are returned."""
    async with as_customer(key, book) as grid:
        job = await grid.job(number)
        with _with_last_transaction(job, as_json=as_json):
            await job.cancel()
            print_result(change_as_json(job) if as_json else await job.after_cancel())


@job.command("panic")
@runs
async def panic(
    number: JobId,
    why: Annotated[str, typer.Argument(metavar="[REASON]", help="Reason, which the customer sees.")] = "",
    reason: Annotated[str, typer.Option("--reason", metavar="REASON", help="The same as an option.")] = "",
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """End a job with a full refund for any run time (operator's key)."""
    if why and reason:
        raise InputError("The reason is given twice.")
    async with as_sender(key, book) as session:
        receipt = await session.writer.panic_job(number, why or reason or PANIC_REASON)
        with with_transaction(receipt.tx_hash):
            ended = await session.chain.job(number)
            refund = f"{format_credits(ended.locked_wei)} credits went to {ended.customer}"
            print_result(f"job {number} is {ended.status.words}; {refund}.")


@job.command("topup")
@runs
async def topup(
    number: JobId,
    value: Annotated[str, typer.Argument(metavar="[AMOUNT]", help="Credits, such as 100 or 0.5.")] = "",
    wei: InWei = False,
    time: Annotated[
        str, typer.Option("--time", metavar="DURATION", help="Instead of credits: minutes such as 90, or 1h30m.")
    ] = "",
    no_approve: NoApprove = False,
    as_json: AsJson = False,
    force: Force = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Buy more time for a job that a cluster has claimed. Credits that it does not use are returned."""
    if bool(value) is bool(time):
        raise InputError("The top-up is missing, or given twice.", next_step="Give AMOUNT or --time, not both.")
    minutes = _minutes_in(time) if time else 0
    added_wei = amount(value, wei=wei) if value else 0
    async with as_customer(key, book) as grid:
        job = await grid.job(number)
        if minutes:
            added_wei = _cost_of(job, minutes)
        confirm(f"Add {format_credits(added_wei)} credits of {grid.address} to job {number} ({job.name})?", force=force)
        with _with_last_transaction(job, as_json=as_json):
            await job.top_up(credits_of(added_wei), approve=not no_approve)
            if as_json:
                print_result(change_as_json(job))
                return
            limit = plural(job.on_chain.granted_minutes, "minute")
            lines = [f"job {number} may run for {limit} in all, for {job.locked:f} credits."]
            if job.customer != grid.address:
                lines.append(f"What it does not use goes to its customer {job.customer}.")
            print_result(*lines)


@job.command("auto-top-up")
@runs
async def auto_top_up(
    number: JobId,
    limit: Annotated[str, typer.Option("--limit", metavar="CREDITS", help="Most from now on; 0 forbids top-ups.")],
    wei: InWei = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Let the grid top up a job from your allowance, up to a limit."""
    most_wei = amount(limit, wei=wei)
    async with as_customer(key, book) as grid:
        job = await grid.job(number)
        with _with_last_transaction(job):
            await job.limit_top_ups(credits_of(most_wei))
            text = f"by at most {format_credits(most_wei)} credits from now on" if most_wei else "no more"
            print_result(f"the grid tops job {number} up {text}.")


job.command("receipt")(job_receipt)
job.command("file")(job_file)
job.command("again")(again)
job.command("tag")(tag_job)


@contextmanager
def _with_last_transaction(job: AsyncJob, *, as_json: bool = False) -> Iterator[None]:
    """Print the job's transaction after the block, which may fail after it was sent.

    In JSON the block prints it, so only a failure does here, on standard error.
    """
    failed = True
    try:
        with interruptions_explained():
            yield
        failed = False
    finally:
        if job.last_transaction and not as_json:
            print_result(f"transaction {job.last_transaction}")
        elif job.last_transaction and failed:
            typer.echo(f"transaction {job.last_transaction}", err=True)


def _minutes_in(text: str) -> int:
    """Whole minutes of a duration, rounded up. A number without a unit is minutes. Raises InputError."""
    minutes = (
        int(text) if text.isascii() and text.isdigit() and len(text) < 10 else math.ceil((seconds_of(text) or 0) / 60)
    )
    if not 0 < minutes <= MOST_MINUTES:
        raise InputError(f"{text[:40]!r} is no time to add.", next_step="Give minutes such as 90, or 1h30m.")
    return minutes


def _cost_of(job: AsyncJob, minutes: int) -> int:
    """Return the credits in wei that let the job run this much longer. Raises InputError while it has no price."""
    rate_wei = job.on_chain.rate_wei_per_minute
    if not rate_wei:
        raise InputError(
            f"Job {job.id} has no price yet: it is {job.status.words}.",
            next_step="Wait until a cluster has claimed it, or give an amount of credits.",
        )
    return rate_wei * minutes


for _name, _verb in (
    ("files", kept_output.files),
    ("download", kept_output.download),
    ("share", kept_output.share),
    ("delete-files", kept_output.delete_files),
    ("shell", into_job.shell),
    ("exec", into_job.execute),
    ("forward", into_job.forward),
    ("open", into_job.open_page),
):
    job.command(_name)(_verb)
