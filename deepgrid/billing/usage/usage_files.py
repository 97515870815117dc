"""The jobs of a usage report as a table for files: Parquet with exact wei, CSV that spreadsheets can open safely."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pandas as pd

from deepgrid.billing.credits import format_credits
from deepgrid.billing.period import format_time
from deepgrid.billing.usage.usage_figures import NO_CLUSTER, JobUse, UsageReport
from deepgrid.billing.usage.usage_tables import as_json, exit_words
from deepgrid.plain_text import visible

# Where a formula can begin: at the start of a cell, or at what a program with other separators takes for one. Wide
# and small forms of the signs count too.
_FORMULA = re.compile(r"""(^|[;,"'])(\s*)(?=[=+@\-\uff1d\uff0b\uff20\uff0d\ufe66\ufe62\ufe63\ufe6b])""")
TEXT, MONEY, TIME, NUMBER = "text", "money", "time", "number"
COLUMNS = {
    "job_id": NUMBER, "customer": TEXT, "cluster": TEXT, "cluster_address": TEXT, "status": TEXT, "end": TEXT,
    "exit": TEXT, "error": TEXT, "settled_at": TIME, "requested_at": TIME, "claimed_at": TIME, "started_at": TIME,
    "ended_at": TIME, "wait_for_claim_s": NUMBER, "wait_for_start_s": NUMBER, "billed_minutes": NUMBER,
    "earned_wei": MONEY, "cut_wei": MONEY, "refunded_wei": MONEY, "still_locked_wei": MONEY, "cpu_seconds": TEXT,
    "mem_mb_seconds": TEXT, "gpu_seconds": TEXT, "transaction": TEXT,
}  # fmt: skip


def stored(report: UsageReport) -> pd.DataFrame:
    """Return one row per job of the period. Wei and seconds in use are texts, because they can exceed
    64 bits. Times are unix seconds.

    The `attrs` have the figures of the report, as JSON values.
    """
    rows = [_row(one, report) for one in report.now.jobs]
    kinds = {TEXT: "string", MONEY: "string", TIME: "Int64", NUMBER: "Int64"}
    frame = pd.DataFrame(
        {name: pd.Series([row[name] for row in rows], dtype=kinds[kind]) for name, kind in COLUMNS.items()}
    )
    frame.attrs.update(as_json(report))
    return frame


def as_parquet(frame: pd.DataFrame) -> bytes:
    """Return the rows as a Parquet file."""
    file = io.BytesIO()
    frame.to_parquet(file)
    return file.getvalue()


def as_csv(frame: pd.DataFrame) -> str:
    """Return the rows for a spreadsheet: credits, times in UTC, and no text that it would take for a formula."""
    shown = {}
    for name, kind in COLUMNS.items():
        values = [None if pd.isna(value) else value for value in frame[name]]
        shown[name.replace("_wei", "_credits")] = [_cell(value, kind) for value in values]
    return str(pd.DataFrame(shown).to_csv(index=False, quoting=csv.QUOTE_ALL, lineterminator="\n"))


def harmless(text: str) -> str:
    """Return text of one line that no spreadsheet takes for a formula."""
    return _FORMULA.sub(r"\1'\2", visible(text))


def _cell(value: Any, kind: str) -> str:
    if value is None:
        return ""
    if kind == MONEY:
        return format_credits(int(value))
    if kind == TIME:
        return format_time(int(value))
    return harmless(str(value)) if kind == TEXT else str(value)


def _row(one: JobUse, report: UsageReport) -> dict[str, Any]:
    return {
        "job_id": one.job_id,
        "customer": one.customer,
        "cluster": "" if one.cluster == NO_CLUSTER else report.offers.name_of(one.cluster),
        "cluster_address": one.cluster,
        "status": one.status,
        "end": one.end.value if one.end else None,
        "exit": exit_words(one),
        "error": one.error,
        "settled_at": one.settled_at or None,
        "requested_at": one.requested_at or None,
        "claimed_at": one.claimed_at or None,
        "started_at": one.started_at or None,
        "ended_at": one.ended_at or None,
        "wait_for_claim_s": one.to_claim_s,
        "wait_for_start_s": one.to_start_s,
        "billed_minutes": one.billed_minutes,
        "earned_wei": str(one.paid_wei),
        "cut_wei": str(one.cut_wei),
        "refunded_wei": str(one.refunded_wei),
        "still_locked_wei": str(one.still_locked_wei),
        "cpu_seconds": str(one.used_s.cpus),
        "mem_mb_seconds": str(one.used_s.mem_mb),
        "gpu_seconds": str(one.used_s.gpus),
        "transaction": one.tx,
    }
