"""`dps provider usage` and `dps operator usage`: show the report of the flow `report_usage` on a terminal."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from blocks import Operator
from blocks.block_loading import load_block
from deepgrid.billing.period import parse_periods
from deepgrid.chain.ledger import Books
from deepgrid.cli.display.screen import Screen, print_json
from deepgrid.cli.error_boundary import runs
from deepgrid.cli.options import AsJson, ClusterName
from deepgrid.errors import InputError
from deepgrid.files.private_files import replace_file
from deepgrid.operator.operator_books import OperatorBooks
from deepgrid.operator.session import operator_session
from deepgrid.provider.provider_books import ProviderBooks
from deepgrid.provider.session import provider_session
from deployments.cli.operator import OperatorName
from deployments.cli.serving import provider_settings, require_prefect

if TYPE_CHECKING:
    from deepgrid.billing.usage.usage_figures import UsageReport


class Period(StrEnum):
    """A period of the calendar."""

    WEEK = "week"
    MONTH = "month"


Since = Annotated[
    str | None, typer.Option("--from", metavar="TIME", help="Start of the period in UTC, such as 2026-11-20.")
]
Until = Annotated[
    str | None, typer.Option("--to", metavar="TIME", help="End of the period, exclusive. The default is now.")
]
Which = Annotated[Period, typer.Option("--period", help="The last complete week or month, if --from is not given.")]
CsvFile = Annotated[
    Path | None, typer.Option("--csv", metavar="FILE", help="Write all jobs to a file for spreadsheets.")
]


@runs
async def provider_usage(
    cluster: ClusterName,
    period: Which = Period.WEEK,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
    csv_file: CsvFile = None,
) -> None:
    """Show what a cluster earned over a period, how busy it was, and who used it. Reads the chain only."""
    async with provider_session(await provider_settings(cluster)) as session:
        report = await _read(ProviderBooks(session), period, since, until)
    show_usage(report, as_json=as_json, csv_file=csv_file)


@runs
async def operator_usage(
    name: OperatorName,
    period: Which = Period.WEEK,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
    csv_file: CsvFile = None,
) -> None:
    """Show what clusters earned over a period, how busy they were, and who used them. Reads the chain only."""
    require_prefect()
    async with operator_session((await load_block(Operator, name)).settings()) as session:
        report = await _read(OperatorBooks(name, session), period, since, until)
    show_usage(report, as_json=as_json, csv_file=csv_file)


async def _read(books: Books, period: Period, since: str | None, until: str | None) -> UsageReport:
    from deepgrid.billing.usage import usage_figures  # imports pandas, which loads slowly
    from deepgrid.chain.offer_history import read_usage

    span, before = parse_periods(period, since, until, await books.now())
    entries = await read_usage(books, span, before)
    return usage_figures.report(
        books.name, books.provider, (span, entries.now), (before, entries.before), entries.offers
    )


def show_usage(report: UsageReport, *, as_json: bool, csv_file: Path | None) -> None:
    """Print the report, and write the file if one is requested. Names and errors in it are untrusted text."""
    from deepgrid.billing.usage import usage_files, usage_tables

    if csv_file is not None:
        _write(csv_file, usage_files.as_csv(usage_files.file_rows(report)))
    if as_json:
        print_json(usage_tables.as_json(report))
        return
    screen = Screen()
    for words in (usage_tables.message(report), *usage_tables.remarks(report)):
        screen.line(words)
    for table in usage_tables.tables(report):
        screen.heading(table.title)
        if table.rows:
            screen.table(table.columns, table.rows)
        else:
            screen.line("None.")


def _write(file: Path, text: str) -> None:
    try:
        replace_file(file, text.encode())
    except OSError as error:
        raise InputError(f"{file} cannot be written: {os.strerror(error.errno or 0)}.") from None
