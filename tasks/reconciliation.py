"""Opens, compares, keeps and publishes one party's books.

The functions import pandas and matplotlib, which load slowly.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from prefect.artifacts import acreate_markdown_artifact, acreate_table_artifact

from deepgrid.billing.coverage import Chosen, Coverage
from deepgrid.billing.entries import Ledger, Runs, Span
from deepgrid.billing.period import file_name
from deepgrid.chain.ledger import Books
from deepgrid.errors import InputError
from deepgrid.files.private_files import write_json
from deepgrid.operator.operator_books import OperatorBooks
from deepgrid.provider.provider_books import ProviderBooks
from orchestration import sessions

if TYPE_CHECKING:
    from deepgrid.billing.reconcile import Reconciliation

COVERED = "covered.json"


@asynccontextmanager
async def open_books(cluster: str | None, operator: str | None) -> AsyncIterator[Books]:
    """Yield the books of the cluster's provider, or of the operator. Raises InputError unless exactly one is given."""
    if (cluster is None) == (operator is None):
        raise InputError("Books are a cluster's or an operator's.", next_step="Give one of `cluster` and `operator`.")
    if cluster is not None:
        async with sessions.provider(cluster) as provider:
            yield ProviderBooks(provider)
    elif operator is not None:
        async with sessions.operator(operator) as session:
            yield OperatorBooks(operator, session)


async def choose_period(books: Books, since: str | None, until: str | None, run: str) -> Chosen:
    """Return the requested period; without one, the time since the last scheduled run.

    It begins earlier if a receipt that was missing for days can be read now.
    """
    if since is not None or until is not None:
        return Chosen(await books.period(since, until))
    newest_block_at = await books.chain.now()
    chosen = _coverage(books).choose(run, await books.now(), newest_block_at, books.again_s)
    again_from = await books.compare_again_from()
    if again_from is None or again_from >= chosen.span.since:
        return chosen
    return replace(chosen, span=Span(again_from, chosen.span.until))


async def cover(books: Books, chosen: Chosen, run: str, result: Reconciliation) -> None:
    """Note the period as compared, unless accounting or receipts still lack runs of it."""
    if chosen.covers_until is None or result.undecided:
        return
    write_json(books.folder / COVERED, _coverage(books).after(run, chosen).as_json())


def _coverage(books: Books) -> Coverage:
    file = books.folder / COVERED
    try:
        return Coverage.of(json.loads(file.read_text())) if file.exists() else Coverage()
    except ValueError:
        return Coverage.of(None)


async def compare(
    books: Books, chosen: Chosen, ledger: Ledger, runs: Runs | None, tolerance_minutes: int
) -> Reconciliation:
    """Join events, transfers and accounting per claim, name the differences, and compute the totals."""
    from deepgrid.billing.reconcile import needs_older_strays, reconcile

    ledger = await books.with_jobs(ledger, runs)
    if books.provider is None and needs_older_strays(ledger):
        ledger = await books.with_older_strays(ledger)
    return reconcile(
        books.name,
        ledger,
        chosen.span,
        runs=runs,
        provider=books.provider,
        tolerance_minutes=tolerance_minutes,
        late_s=chosen.late_s,
    )


async def keep(books: Books, result: Reconciliation) -> None:
    """Write the rows to `<state>/books/<period>.parquet`, atomically."""
    from deepgrid.billing.report import file_rows

    books.folder.mkdir(parents=True, exist_ok=True)
    file = books.folder / f"{file_name(result.span)}.parquet"
    draft = file.with_suffix(".draft")
    file_rows(result).to_parquet(draft)
    os.replace(draft, file)


async def publish(books: Books, result: Reconciliation) -> None:
    """Publish the artifacts `reconciliation-<name>`, a page with a plot, and `reconciliation-<name>-jobs`, a table."""
    os.environ.setdefault("MPLCONFIGDIR", str(books.folder / "matplotlib"))  # for its font cache
    from deepgrid.billing.plot import draw
    from deepgrid.billing.report import page, table

    key = artifact_key("reconciliation", books.name)
    await acreate_markdown_artifact(page(result, draw(result)), key=key, description=result.message)
    await acreate_table_artifact(table(result), key=f"{key}-jobs", description=result.message)


def artifact_key(what: str, name: str) -> str:
    """Return the key of an artifact about these books."""
    return f"{what}-" + re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
