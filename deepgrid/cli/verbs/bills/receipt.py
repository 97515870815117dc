"""`dps job receipt` and `dps receipt verify`: signed receipts of jobs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from deepgrid.billing.resource_use import ResourceUse
from deepgrid.billing.use_samples import UseHistory
from deepgrid.chain.book import DEFAULT_BOOK
from deepgrid.cli.access.address_book import find_book
from deepgrid.cli.access.grid import as_anyone, as_customer
from deepgrid.cli.display.screen import Screen
from deepgrid.cli.error_boundary import FAILED, complain, runs
from deepgrid.cli.options import DEFAULT_KEY, BookFile, JobId, KeyFile
from deepgrid.cli.standard_streams import print_result, write_bytes
from deepgrid.client.job import AsyncJob
from deepgrid.errors import GridError, InputError, NotFound

T = TypeVar("T")
USE_WITHIN_S = 5.0  # services that do not answer must not hold up the rest of the job

receipt = typer.Typer(help="Verify receipts of jobs.", no_args_is_help=True)


@runs
async def job_receipt(
    number: JobId,
    as_json: Annotated[bool, typer.Option("--json", help="Print the signed JSON, to be kept and verified.")] = False,
    pdf: Annotated[Path | None, typer.Option("--pdf", metavar="FILE", help="Write a PDF instead.")] = None,
    key: KeyFile = DEFAULT_KEY,
    book: BookFile = None,
) -> None:
    """Show the receipt of a job that is over, as its provider signed it."""
    if as_json and pdf is not None:
        raise InputError("--json and --pdf are two forms.", next_step="Give one of them.")
    async with as_customer(key, book, asks_services=True) as grid:
        found = await (await grid.job(number)).receipt()
    if pdf is not None:
        file = found.save(pdf.with_suffix(".pdf") if not pdf.suffix else pdf)
        print_result(f"receipt of job {number} written to {file}")
    elif as_json:
        write_bytes(found.data)
    else:
        from deepgrid.client.display.receipt_text import receipt_sections  # here, as below: signatures load slowly

        screen = Screen()
        for title, rows in receipt_sections(found.contents):
            screen.heading(title)
            screen.pairs(rows)


async def use_of(job: AsyncJob) -> tuple[ResourceUse | None, UseHistory | None]:
    """Return what an own job used by its receipt, and over time. A missing answer is no error."""
    if job.started is None:
        return None, None
    history = asyncio.create_task(_result_or_none(job.use_history()))
    return await _result_or_none(job.resource_use()) if job.over else None, await history


async def _result_or_none(reading: Awaitable[T]) -> T | None:
    try:
        async with asyncio.timeout(USE_WITHIN_S):
            return await reading
    except (GridError, TimeoutError):
        return None


@receipt.command("verify")
@runs
async def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The JSON of a receipt; - for standard input.")],
    offline: Annotated[bool, typer.Option("--offline", help="Check the signature only, without a node.")] = False,
    book: BookFile = None,
) -> None:
    """Check that the provider signed a receipt, and that the chain says the same. Status 1: it does not.

    Without an address book, only the signature is checked.
    """
    from deepgrid.client.bills.job_receipt import JobReceipt, verify_on_chain

    content = _read(file)
    try:
        found = JobReceipt(content)
        signed = f"job {found.job_id}: signed by its provider {found.provider}"
        if offline or not await _has_book(book):
            chain_id = found.contents.chain_id
            print_result(f"{signed}; not compared with chain {chain_id}.")
            return
        async with as_anyone(book) as chain:
            await verify_on_chain(chain, found)
    except (InputError, NotFound) as error:
        complain(error)
        raise typer.Exit(FAILED) from None
    print_result(f"{signed}, and the chain says the same.")


async def _has_book(book: Path | None) -> bool:
    return await find_book(book) is not None or Path(DEFAULT_BOOK).expanduser().exists()


def _read(file: Path) -> bytes:
    """Return the file's bytes, one more than a receipt can have at most. Raises InputError."""
    from deepgrid.services.receipts import MAX_RECEIPT_BYTES

    if str(file) == "-":
        return sys.stdin.buffer.read(MAX_RECEIPT_BYTES + 1)
    try:
        with open(file.expanduser(), "rb") as stream:
            return stream.read(MAX_RECEIPT_BYTES + 1)
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.", next_step="Name another file.") from None
