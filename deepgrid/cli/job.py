"""`dps job`: show jobs, read their output, cancel them, buy them more time."""

from __future__ import annotations

from typing import Annotated

import typer

from deepgrid.billing.credits import format_credits
from deepgrid.cli.border import runs
from deepgrid.cli.grid import amount, as_customer, shown
from deepgrid.cli.options import DEFAULT_KEY, Amount, AsJson, BookFile, InWei, JobId, KeyFile, NoApprove, NoTimestamp
from deepgrid.cli.record import job_as_json, read_record, record_as_json, show_jobs, show_record
from deepgrid.cli.screen import Screen, print_json
from deepgrid.cli.tail import follow_log, read_log
from deepgrid.client.display.story import ClusterNames
from deepgrid.client.display.text import plural
from deepgrid.customer.session import CustomerSession
from deepgrid.lifecycle.job import Job

job = typer.Typer(help="Show jobs, read their output, cancel them, buy them more time.", no_args_is_help=True)


@job.command("get")
@runs
async def get(number: JobId, as_json: AsJson = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Show a job: its state, why it waits, its history and its bill."""
    async with as_customer(key, book) as session:
        record = await read_record(session, number)
    if as_json:
        print_json(record_as_json(record))
    else:
        show_record(Screen(), record)


@job.command("list")
@runs
async def list_jobs(
    limit: Annotated[int, typer.Option("--limit", "-n", help="Number of jobs, newest first.", min=1)] = 20,
    as_json: AsJson = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """List your newest jobs."""
    async with as_customer(key, book) as session:
        ids = (await session.chain.jobs_by_customer(session.address))[-limit:]
        jobs = (await session.chain.jobs(ids))[::-1]
        names = ClusterNames(session.chain)
        clusters = [await names.of(job.provider) for job in jobs]
    if as_json:
        print_json([job_as_json(job, cluster) for job, cluster in zip(jobs, clusters, strict=True)])
    elif jobs:
        show_jobs(Screen(), jobs, clusters)
    else:
        typer.echo("You have no jobs yet. Submit one with `dps submit FILE --credits AMOUNT`.", err=True)


@job.command("logs")
@runs
async def logs(
    number: JobId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue until the job is over.")] = False,
    no_timestamp: NoTimestamp = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Print a job's output. With --follow, each line has the time of its arrival."""
    screen, aside = Screen(timestamps=follow and not no_timestamp), Screen(to_stderr=True)
    async with as_customer(key, book) as session:
        status = (await session.chain.job(number)).status
        pages = follow_log(session, number, aside.remark) if follow else read_log(session, number)
        printed = 0
        async for lines in pages:
            screen.output(lines)
            printed += len(lines)
        if not printed:
            aside.remark(f"job {number} is {status.words}; it has no stored output")


@job.command("cancel")
@runs
async def cancel(number: JobId, key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Cancel a job. Credits that it did not use are returned."""
    async with as_customer(key, book) as session:
        receipt = await session.writer.cancel_job(number)
        print(await _what_comes_next(session, await session.chain.job(number)))
    print(f"transaction {receipt.tx_hash}")


@job.command("panic")
@runs
async def panic(
    number: JobId,
    reason: Annotated[str, typer.Argument(metavar="REASON", help="Reason, which the customer sees.")],
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """End a job with a full refund, however long it ran (operator's key)."""
    async with as_customer(key, book) as session:
        receipt = await session.writer.panic_job(number, reason)
        ended = await session.chain.job(number)
    print(
        f"job {number} is {ended.status.words}; {shown(ended.locked_wei, wei=False)} credits went to {ended.customer}."
    )
    print(f"transaction {receipt.tx_hash}")


@job.command("topup")
@runs
async def topup(
    number: JobId,
    value: Amount,
    wei: InWei = False,
    no_approve: NoApprove = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Buy more time for a job that a cluster has claimed. Credits that it does not use are returned."""
    added_wei = amount(value, wei=wei)
    async with as_customer(key, book) as session:
        receipt = await session.top_up(number, added_wei, approve=not no_approve)
        job = await session.chain.job(number)
    limit, locked = plural(job.granted_minutes, "minute"), shown(job.locked_wei, wei=False)
    print(f"job {number} may run for {limit} in all, for {locked} credits.")
    if job.customer != session.address:
        print(f"What it does not use goes to its customer {job.customer}.")
    print(f"transaction {receipt.tx_hash}")


async def _what_comes_next(session: CustomerSession, job: Job) -> str:
    if job.status.cold:
        settlement = await session.chain.settlement(job.id)
        back = format_credits(settlement.refunded_wei) if settlement else "all"
        return f"job {job.id} is {job.status.words}; {back} credits came back."
    constants = await session.chain.constants()
    fee = plural(constants.cancellation_fee_minutes, "minute")
    return (
        f"job {job.id} is {job.status.words}: its cluster has been asked to stop it, and settles what it ran"
        f" (at least {fee} if it ran). If it is not settled in"
        f" {plural(constants.claim_timeout_minutes, 'minute')}, cancel it again: then all credits come back."
    )
