"""The jobs of a usage report as a table for files: Parquet with exact wei, CSV that spreadsheets can open safely."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable

import pandas as pd

from deepgrid.billing.credits import format_credits
from deepgrid.billing.period import format_time
from deepgrid.billing.usage.job_uses import NO_CLUSTER
from deepgrid.billing.usage.usage_figures import UsageReport
from deepgrid.billing.usage.usage_tables import as_json
from deepgrid.plain_text import visible

# Where a formula can begin: at the start of a cell, or after a character that some programs treat as a separator.
# Full-width and small forms of the signs count too.
_FORMULA = re.compile(r"""(^|[;,"'])(\s*)(?=[=+@\-\uff1d\uff0b\uff20\uff0d\ufe66\ufe62\ufe63\ufe6b])""")


def file_rows(report: UsageReport) -> pd.DataFrame:
    """Return a table with one row per job of the period. Its `attrs` hold the report's figures as JSON values.

    Wei and seconds in use are texts, because they can exceed 64 bits. Times are unix seconds.
    """
    jobs, name_of = report.now.jobs, report.offers.name_of
    frame = pd.DataFrame(
        {
            "job_id": _numbers(one.job_id for one in jobs),
            "customer": _texts(one.customer for one in jobs),
            "cluster": _texts("" if one.cluster == NO_CLUSTER else name_of(one.cluster) for one in jobs),
            "cluster_address": _texts(one.cluster for one in jobs),
            "status": _texts(one.status for one in jobs),
            "end": _texts("" if one.end is None else one.end.value for one in jobs),
            "exit": _texts(one.exit for one in jobs),
            "error": _texts(one.error for one in jobs),
            "settled_at": _numbers(one.settled_at or None for one in jobs),
            "requested_at": _numbers(one.requested_at or None for one in jobs),
            "claimed_at": _numbers(one.claimed_at or None for one in jobs),
            "started_at": _numbers(one.started_at or None for one in jobs),
            "ended_at": _numbers(one.ended_at or None for one in jobs),
            "wait_for_claim_s": _numbers(one.to_claim_s for one in jobs),
            "wait_for_start_s": _numbers(one.to_start_s for one in jobs),
            "billed_minutes": _numbers(one.billed_minutes for one in jobs),
            "earned_wei": _texts(str(one.paid_wei) for one in jobs),
            "cut_wei": _texts(str(one.cut_wei) for one in jobs),
            "refunded_wei": _texts(str(one.refunded_wei) for one in jobs),
            "still_locked_wei": _texts(str(one.still_locked_wei) for one in jobs),
            "cpu_seconds": _texts(str(one.used_s.cpus) for one in jobs),
            "mem_mb_seconds": _texts(str(one.used_s.mem_mb) for one in jobs),
            "gpu_seconds": _texts(str(one.used_s.gpus) for one in jobs),
            "transaction": _texts(one.tx for one in jobs),
        }
    )
    frame.attrs.update(as_json(report))
    return frame


def as_parquet(frame: pd.DataFrame) -> bytes:
    """Return the rows as a Parquet file."""
    file = io.BytesIO()
    frame.to_parquet(file)
    return file.getvalue()


def as_csv(frame: pd.DataFrame) -> str:
    """Return the rows for a spreadsheet: credits, times in UTC, and no text that it would interpret as a formula."""
    shown = {name.replace("_wei", "_credits"): [_cell(value, name) for value in frame[name]] for name in frame.columns}
    return str(pd.DataFrame(shown).to_csv(index=False, quoting=csv.QUOTE_ALL, lineterminator="\n"))


def harmless(text: str) -> str:
    """Return the text on one line, changed so that no spreadsheet interprets it as a formula."""
    return _FORMULA.sub(r"\1'\2", visible(text))


def _cell(value: object, column: str) -> str:
    if value is pd.NA:
        return ""
    if column.endswith("_wei"):
        return format_credits(int(str(value)))
    if column.endswith("_at"):
        return format_time(int(str(value)))
    return harmless(str(value))


def _numbers(values: Iterable[int | None]) -> pd.Series[int]:
    return pd.Series(list(values), dtype="Int64")


def _texts(values: Iterable[str]) -> pd.Series[str]:
    return pd.Series(list(values), dtype="string")
