"""`dps job file`, `dps job again` and `dps job tag`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from deepgrid.billing.credits import format_credits
from deepgrid.cli.access.confirmation import Force, confirm
from deepgrid.cli.access.grid import as_customer
from deepgrid.cli.display.screen import json_text, print_json
from deepgrid.cli.error_boundary import interruptions_explained, runs
from deepgrid.cli.options import DEFAULT_KEY, AsJson, BookFile, Credits, JobId, KeyFile, MaxPrice, NoApprove
from deepgrid.cli.standard_streams import print_result, write_bytes
from deepgrid.cli.verbs.repeat.following import follow
from deepgrid.cli.verbs.repeat.repeat_options import After, AfterAny, Note, Tag, Time
from deepgrid.cli.verbs.repeat.secrets_of_jobs import read_again
from deepgrid.client.job import AsyncJob
from deepgrid.errors import GridError, InputError
from deepgrid.plain_text import plain


@runs
async def job_file(number: JobId, as_json: AsJson = False, key: KeyFile = DEFAULT_KEY, book: BookFile = None) -> None:
    """Print the workflow file of a job. Its secrets are `***`; modules are resolved, comments are gone."""
    async with as_customer(key, book, asks_services=True) as grid:
        file = await (await grid.job(number)).file()
    if as_json:
        print_json({"file": file.text, "masked": list(file.masked), "tags": dict(file.tags), "note": file.note})
    else:
        write_bytes(file.text.encode())  # in any locale


@runs
async def again(
    number: JobId,
    edit: Annotated[bool, typer.Option("--edit", help="Edit the file in $EDITOR first.")] = False,
    credits: Credits = None,
    time: Time = None,
    max_price: MaxPrice = None,
    job_name: Annotated[str | None, typer.Option("--job-name", help="Another name, of at most 32 bytes.")] = None,
    tag: Tag = None,
    note: Note = None,
    after: After = None,
    after_any: AfterAny = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show the job's states and output until it is over.")
    ] = False,
    exit_on_job_exit: Annotated[
        bool, typer.Option("--exit-on-job-exit", "-e", help="Watch, and exit with the job's status.")
    ] = False,
    no_approve: NoApprove = False,
    as_json: AsJson = False,
    force: Force = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Submit a job again, with its file, credits, labels and other terms."""
    if credits is not None and time is not None:
        raise InputError("The deposit is given twice.", next_step="Give --credits or --time, not both.")
    async with as_customer(key, book, asks_services=True) as grid:
        old = await grid.job(number)
        file = await old.file()
        workflow = read_again(file, old.name or "job", number, edit=edit)
        options: dict[str, Any] = {"credits": credits, "max_price": max_price, "name": job_name}
        options |= {"after": after, "after_any": after_any}
        if time is not None:
            deposit = await old.deposit_again(workflow, time, max_price=max_price)
            typer.echo(plain(str(deposit)), err=True)
            options["credits"], options["min_time"] = deposit.credits, time
        locked = options["credits"] or format_credits(old.on_chain.locked_wei)
        confirm(
            f"Lock {locked} credits of {grid.address} to run job {number} ({old.name}) again?"
            " What it does not use is returned.",
            force=force,
        )
        with interruptions_explained():
            job = await old.again(
                workflow,
                tags=tag or file.tags,
                note=file.note if note is None else note,
                approve=not no_approve,
                **options,
            )
        if as_json:
            print_result(json_text({"job": job.id, "again": number, "locked_wei": str(job.on_chain.locked_wei)}))
        else:
            print_result(f"job {job.id} submitted")
        if watch or exit_on_job_exit:
            await follow(job, workflow, timestamps=True, exits=exit_on_job_exit)


async def notes_of(job: AsyncJob) -> dict[str, Any]:
    """Return what is noted about an own job: its tags, note and sweep; nothing if it is not kept."""
    try:
        file = await job.file()
    except GridError:
        return {}
    noted = {"tags": dict(file.tags), "note": file.note, "sweep": file.sweep}
    return {name: value for name, value in noted.items() if value}


@runs
async def tag_job(
    number: JobId,
    tag: Tag = None,
    note: Note = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove the tags that are not given here.")] = False,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Add tags to a job, or change its note. They are not on chain; only you read them."""
    if not tag and note is None and not clear:
        raise InputError("There is nothing to change.", next_step="Give --tag, --note or --clear.")
    from deepgrid.client.repeat.marks import tags_of

    async with as_customer(key, book, asks_services=True) as grid:
        job = await grid.job(number)
        kept = {} if clear else (await job.file()).tags
        await job.tag({**kept, **tags_of(tag)}, note=note)
        file = await job.file()
    words = " ".join(f"{name}={value}" if value else name for name, value in file.tags.items()) or "no tags"
    print_result(f"job {number}: {words}" + (f"; note: {file.note}" if file.note else ""))
