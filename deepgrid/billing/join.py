"""Joins the entries of contract, token and Slurm into one row per claim."""

from __future__ import annotations

from typing import Any

import pandas as pd

from deepgrid.billing.entries import Ledger, Run, Runs
from deepgrid.billing.expected import expected_minutes, run_minutes
from deepgrid.billing.frames import GIVEN_BACK, KEY, SETTLED, by_claim, chain_frame, first_run, moved_frame, runs_frame

MONEY = [
    "locked", "brought_forward", "paid", "cut", "refunded", "still_locked", "deposit", "top_up", "paid_out",
    "refund_out",
]  # fmt: skip


def join(ledger: Ledger, runs: Runs | None, provider: str | None = None) -> pd.DataFrame:
    """The outer join of the three sources, or of the first two if `runs` is None.

    Claims that only Slurm knows have no `outcome`. Missing values are None, missing money is 0. `ran` is in started
    minutes. `expected` are the minutes to bill by the contract's rules, None where nothing was settled.
    """
    chain = chain_frame(ledger, provider)
    kept, given_back = chain[chain["outcome"] != GIVEN_BACK], chain[chain["outcome"] == GIVEN_BACK]
    rows = pd.concat([kept.merge(moved_frame(ledger), on="job_id", how="left"), given_back], ignore_index=True)
    known: dict[tuple[int, int], Run] = {}
    if runs is not None:
        rows = rows.merge(runs_frame(runs.runs), on=KEY, how="outer")
        known = {claim: first_run(mine) for claim, mine in by_claim(runs.runs).items()}
    rows = _plain(rows)
    keys = list(zip(rows["job_id"], rows["claimed_at"], strict=True))
    rows["ran"] = _objects([run_minutes(known.get(key)) for key in keys])
    rows["expected"] = _objects(
        [
            _expected(ledger, key[0], known.get(key)) if runs is not None and outcome == SETTLED else None
            for key, outcome in zip(keys, rows["outcome"], strict=True)
        ]
    )
    return rows.sort_values(KEY, ignore_index=True)


def records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as dicts, with unchanged values."""
    return [dict(zip(rows.columns, values, strict=True)) for values in rows.itertuples(index=False, name=None)]


def _expected(ledger: Ledger, job_id: int, run: Run | None) -> int:
    return expected_minutes(
        ledger.jobs[job_id], run,
        fee_minutes=ledger.cancellation_fee_minutes, timeout_minutes=ledger.claim_timeout_minutes,
    )  # fmt: skip


def _plain(rows: pd.DataFrame) -> pd.DataFrame:
    """Replace empty values of the join by None, and by 0 for money."""
    rows = rows.astype(object).where(rows.notna(), None)
    for column in (name for name in MONEY if name in rows):
        rows[column] = _objects([0 if value is None else value for value in rows[column]])
    return rows


def _objects(values: list[Any]) -> pd.Series[Any]:
    return pd.Series(values, dtype=object)
