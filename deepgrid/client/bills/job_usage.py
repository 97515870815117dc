"""A customer's usage, read from the chain, as values and as a DataFrame."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING

from deepgrid.billing.entries import Span
from deepgrid.billing.period import parse_time
from deepgrid.billing.usage.own_usage import By, OwnUsage, as_rows, checked_by, own_usage
from deepgrid.chain.client import Chain
from deepgrid.client.engine.connection import Connection
from deepgrid.errors import InputError
from deepgrid.extras import needs
from deepgrid.lifecycle.job import Job

if TYPE_CHECKING:
    import pandas as pd

When = str | datetime | None
"""A date or time, in UTC unless it names a time zone."""


async def read_usage_frame(connection: Connection, customer: str, since: When, until: When, by: str) -> pd.DataFrame:
    """Return a customer's usage as a DataFrame. Raises InputError, ConfigurationError and ChainError."""
    groups, span = checked_by(by), await period_of(connection.reads, since, until)
    found = await read_own_usage(connection.reads, customer, span)
    with needs("bills"):
        return usage_frame(found, groups)


async def read_own_usage(chain: Chain, customer: str, span: Span) -> OwnUsage:
    """Return the usage of a customer in the period. Raises ChainError."""
    jobs, providers = await asyncio.gather(own_jobs(chain, customer), chain.providers())
    names = {one.address: one.name for one in providers if one.name != one.address}
    return own_usage(customer, span, jobs, names)


async def own_jobs(chain: Chain, customer: str) -> list[Job]:
    """Return all jobs of a customer. Raises ChainError."""
    return list(await chain.jobs(await chain.jobs_by_customer(customer)))


async def period_of(chain: Chain, since: When, until: When) -> Span:
    """Return the period: by default from the first job until now. Raises InputError."""
    begin = 0 if since is None else _unix_s(since)
    end = await chain.next_block_time() + 1 if until is None else _unix_s(until)
    if begin >= end:
        raise InputError("The period ends before it begins.", next_step="Give a start that is before the end.")
    return Span(begin, end)


def usage_frame(usage: OwnUsage, by: By) -> pd.DataFrame:
    """Return one row per group. Amounts are ints of wei, which never overflow: their columns hold Python's ints."""
    import pandas as pd

    rows = as_rows(usage, by)
    columns = list(rows[0]) if rows else [by, "jobs", "minutes", "cost_wei", "paid_wei", "cut_wei", "refunded_wei"]
    frame = {name: pd.Series([row[name] for row in rows], dtype=_dtype(name)) for name in columns}
    found = pd.DataFrame(frame)
    found.attrs.update(customer=usage.customer, since=usage.span.since, until=usage.span.until)
    return found


def usage_parquet(frame: pd.DataFrame) -> bytes:
    """Return the rows as a Parquet file, with texts of wei."""
    from deepgrid.billing.usage.usage_files import as_parquet

    return as_parquet(frame.astype({name: "string" for name in frame.columns if name.endswith("_wei")}))


def usage_csv(frame: pd.DataFrame) -> str:
    """Return the rows for a spreadsheet: credits, times in UTC, and no text that it would interpret as a formula."""
    from deepgrid.billing.usage.usage_files import as_csv

    return as_csv(frame)


def _dtype(name: str) -> str:
    if name.endswith("_wei"):
        return "object"
    return "Int64" if name in ("job", "jobs", "minutes") or name.endswith("_at") else "string"


def _unix_s(when: str | datetime) -> int:
    return parse_time(when) if isinstance(when, str) else parse_time(when.isoformat())
