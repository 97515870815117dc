"""The steps of a usage report: periods, entries, figures, files and artifact.

The functions import pandas and matplotlib, which load slowly.
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING

from prefect.artifacts import acreate_markdown_artifact

from deepgrid.billing.entries import Span
from deepgrid.billing.period import file_name, parse_periods
from deepgrid.chain.ledger import Books
from deepgrid.files.private_files import make_private_folder, replace_file
from tasks.reconciliation import artifact_key

if TYPE_CHECKING:
    from deepgrid.billing.usage.usage_figures import UsageReport
    from deepgrid.chain.offer_history import UsageEntries


async def choose_periods(
    books: Books, period: str, since: datetime | None, until: datetime | None
) -> tuple[Span, Span]:
    """Return the period of the report, and the one before it."""
    begin, end = (None if time is None else time.isoformat() for time in (since, until))
    return parse_periods(period, begin, end, await books.now())


async def read_usage_entries(books: Books, span: Span, before: Span) -> UsageEntries:
    """Read both periods from the chain: bills, claims and offers."""
    from deepgrid.chain.offer_history import read_usage

    return await read_usage(books, span, before)


async def compute_usage(books: Books, span: Span, before: Span, entries: UsageEntries) -> UsageReport:
    """Compute the figures of both periods."""
    from deepgrid.billing.usage.usage_figures import report

    return report(books.name, books.provider, (span, entries.now), (before, entries.before), entries.offers)


async def keep_usage(books: Books, report: UsageReport) -> None:
    """Write the jobs to `<state>/usage/<period>.parquet` and `.csv`, readable by this account only."""
    from deepgrid.billing.usage.usage_files import as_csv, as_parquet, file_rows

    folder, frame = make_private_folder(books.folder.parent / "usage"), file_rows(report)
    replace_file(folder / f"{file_name(report.now.span)}.parquet", as_parquet(frame))
    replace_file(folder / f"{file_name(report.now.span)}.csv", as_csv(frame).encode())


async def publish_usage(books: Books, report: UsageReport, period: str) -> str:
    """Publish a page with tables and a plot. Returns the report in one sentence.

    The artifact is `usage-<name>-week` or `-month`, or `usage-<name>` for a `period` that is neither.
    """
    os.environ.setdefault("MPLCONFIGDIR", str(books.folder / "matplotlib"))  # for its font cache
    from deepgrid.billing.usage.usage_page import page
    from deepgrid.billing.usage.usage_plot import draw_usage
    from deepgrid.billing.usage.usage_tables import message

    words = message(report)
    key = artifact_key("usage", f"{books.name} {period}")
    await acreate_markdown_artifact(page(report, draw_usage(report)), key=key, description=words)
    return words
