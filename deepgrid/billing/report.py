"""Presents a reconciliation: a page, a table, and the rows for a file."""

from __future__ import annotations

import base64
from typing import Any

import pandas as pd

from deepgrid.billing.columns.claims import MONEY
from deepgrid.billing.credits import format_credits
from deepgrid.billing.entries import ForeignJob
from deepgrid.billing.period import format_time
from deepgrid.billing.reconcile import Reconciliation
from deepgrid.billing.rules.kinds import Finding
from deepgrid.billing.rules.patterns import Pattern
from deepgrid.billing.rules.refunds import PaidBack
from deepgrid.billing.totals import Totals

ROWS_SHOWN = 500  # of a table in the UI; the file has all rows
JOBS_NAMED = 20  # of one customer
NUMBERS = ("job_id", "claimed_at", "billed", "ran", "expected", "slurm_id", "slurm_start", "slurm_end", "starts")


def page(result: Reconciliation, picture: bytes) -> str:
    """Return the reconciliation as Markdown, with the plot inside."""
    verdict = "The books agree" if result.clean else "The books do not agree"
    parts = [
        f"# {verdict}: {result.name}",
        result.message,
        f"From {format_time(result.span.since)} to {format_time(result.span.until)} UTC, by {result.sources}.",
    ]
    if result.differences:
        parts += ["## Differences", _findings(result.differences)]
    if result.patterns:
        parts += ["## Patterns", _patterns(result.patterns)]
    parts += [
        f"![plot](data:image/png;base64,{base64.b64encode(picture).decode()})",
        "## Totals",
        _totals(result.totals),
    ]
    if result.paid_back:
        parts += ["## Paid back again and again", _paid_back(result.paid_back)]
    if result.foreign:
        parts += ["## Slurm jobs of customers' accounts without a claim", _foreign(result.foreign)]
    if result.notes:
        parts += ["## Notes", "Unusual, but correct:", _findings(result.notes)]
    return "\n\n".join(parts) + "\n"


def table(result: Reconciliation) -> list[dict[str, Any]]:
    """Return one row per claim for a table in the UI, differences first. Credits are exact, as text."""
    rows = result.rows
    agrees = rows["difference"] == ""
    first = pd.concat([rows[~agrees].head(ROWS_SHOWN), rows[agrees].head(ROWS_SHOWN)]).head(ROWS_SHOWN)
    return [_display_row(dict(zip(first.columns, values, strict=True))) for values in first.itertuples(index=False)]


def file_rows(result: Reconciliation) -> pd.DataFrame:
    """Return the rows for a file: wei as text, because no Parquet type that pandas reads holds them; times in unix
    seconds.

    The `attrs` have the period and the totals.
    """
    rows = result.rows.rename(columns={name: f"{name}_wei" for name in MONEY})
    for column in rows.columns:
        if column in NUMBERS:
            rows[column] = rows[column].astype("Int64")
        else:
            values = [None if value is None else str(value) for value in rows[column]]
            rows[column] = pd.Series(values, dtype="string", index=rows.index)
    totals = {name: str(getattr(result.totals, name)) for name in Totals.__dataclass_fields__}
    rows.attrs = {"name": result.name, "since": result.span.since, "until": result.span.until, "totals": totals}
    return rows


def _display_row(row: dict[str, Any]) -> dict[str, Any]:
    shown = {"job": row["job_id"], "difference": row["difference"] or "", "status": row["status"] or "only in Slurm"}
    shown["billed min"] = row["billed"]
    for name in ("locked", "paid", "cut", "refunded", "still_locked"):
        shown[name.replace("_", " ")] = format_credits(row[name])
    shown["claimed"] = format_time(row["claimed_at"])
    if "slurm_id" in row:
        shown |= {"ran min": row["ran"], "Slurm job": row["slurm_id"], "Slurm state": row["slurm_state"]}
        shown |= {"Slurm start": format_time(row["slurm_start"]), "Slurm end": format_time(row["slurm_end"])}
    return {**shown, "transaction": row["tx"] or ""}


def _findings(found: tuple[Finding, ...]) -> str:
    """Return a list, because the UI does not wrap lines of a table."""
    return "\n".join(f"* {_finding(one)}" for one in found[:ROWS_SHOWN])


def _finding(one: Finding) -> str:
    kind = f", **{one.kind}** ({one.severity}, {format_credits(one.wei)} credits)" if one.kind else ""
    return f"**job {one.job_id}**{kind}: {one.evidence}{f', transaction `{one.tx}`' if one.tx else ''}"


def _patterns(found: tuple[Pattern, ...]) -> str:
    return "\n".join(
        f"* **{one.kind}** ({one.severity}, {format_credits(one.wei)} credits): provider {one.provider},"
        f" {f'customer {one.customer}' if one.customer else 'all customers'}: {one.evidence}"
        for one in found[:ROWS_SHOWN]
    )


def _paid_back(found: tuple[PaidBack, ...]) -> str:
    return "\n".join(
        f"* **{one.customer}**: {len(one.job_ids)} jobs that ran {one.minutes} minutes in Slurm:"
        f" {', '.join(map(str, one.job_ids[:JOBS_NAMED]))}{', ...' if len(one.job_ids) > JOBS_NAMED else ''}"
        for one in found[:ROWS_SHOWN]
    )


def _foreign(found: tuple[ForeignJob, ...]) -> str:
    return "\n".join(
        f"* **Slurm job {one.slurm_id}** of `{_plain(one.account)}`: {format_time(one.started_at) or 'not started'}"
        f" to {format_time(one.ended_at) or 'now'}{'' if one.cpu_s is None else f', {one.cpu_s} s of CPU time'}"
        for one in found[:ROWS_SHOWN]
    )


def _plain(text: str) -> str:
    """Return a name from Slurm, without characters that would end a line or a code span."""
    return "".join(c if c.isprintable() and c != "`" else "?" for c in text)


def _totals(totals: Totals) -> str:
    figures = {
        "brought forward": totals.brought_forward,
        "transferred in": totals.taken,
        "**locked**": totals.locked,
        "paid to providers": totals.paid,
        "kept as cut": totals.cut,
        "refunded": totals.refunded,
        "still locked": totals.still_locked,
    }
    if totals.deposits is not None:
        figures |= {
            "withdrawn by the platform": totals.withdrawn,
            "sent to the contract for no job": totals.strays,
            "deposits of hot jobs now": totals.deposits,
            "cut in the contract now": totals.platform_cut,
            "**the contract's balance now**": totals.balance,
        }
    rows = [f"| {what} | {format_credits(wei)} |" for what, wei in figures.items()]
    return "\n".join(["| credits | |", "|---|--:|", *rows])
