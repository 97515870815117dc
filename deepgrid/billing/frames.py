"""The entries of the books as pandas tables, and their join. Columns hold Python objects, so wei stay exact.

There is one row per claim, with the key `job_id` and `claimed_at`. A job without a claim has `claimed_at` 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pandas as pd

from deepgrid.billing.entries import Ledger, Purpose, Run, Runs, Settlement
from deepgrid.billing.expected import expected_minutes, run_minutes

KEY = ["job_id", "claimed_at"]
SETTLED, OPEN, GIVEN_BACK = "settled", "open", "given back"

CHAIN_COLUMNS = [
    *KEY, "outcome", "status", "provider", "customer", "locked", "brought_forward", "billed", "paid", "cut",
    "refunded", "still_locked", "tx",
]  # fmt: skip
MOVED_COLUMNS = ["job_id", "deposit", "top_up", "paid_out", "refund_out"]
RUN_COLUMNS = [*KEY, "slurm_id", "slurm_state", "slurm_start", "slurm_end", "starts"]


def chain_frame(ledger: Ledger, provider: str | None = None) -> pd.DataFrame:
    """Return claims that were settled, open or given back at the period's end, of one provider or of all."""
    settled_in, settled_at_all = {}, set()
    for settlement in ledger.settlements:
        settled_at_all.add(settlement.job_id)
        if ledger.in_period(settlement.block):
            settled_in[settlement.job_id] = settlement
    rows = [_settled(ledger, one) for one in settled_in.values() if provider in (None, one.provider)]
    for job_id, job in ledger.jobs.items():
        is_open = job_id not in settled_in and (job.status.hot or job_id in settled_at_all)
        if is_open and ledger.requested.get(job_id, 0) <= ledger.last_block and _is_held_by(ledger, job_id, provider):
            rows.append(_open(ledger, job_id))
    if provider is not None:
        rows += _given_back(ledger, provider)
    return _frame(rows, CHAIN_COLUMNS)


def moved_frame(ledger: Ledger) -> pd.DataFrame:
    """Wei transferred for each job in the period: deposit and top-ups in, payments to provider and customer out."""
    columns = {
        Purpose.DEPOSIT: "deposit", Purpose.TOP_UP: "top_up", Purpose.PAID: "paid_out", Purpose.REFUND: "refund_out",
        Purpose.RELEASE: "refund_out",
    }  # fmt: skip
    sums: dict[int, dict[str, Any]] = defaultdict(lambda: dict.fromkeys(columns.values(), 0))
    for transfer in ledger.transfers:
        if transfer.job_id is not None and ledger.in_period(transfer.block):
            sums[transfer.job_id][columns[transfer.purpose]] += transfer.wei
    return _frame([{"job_id": job_id, **sums[job_id]} for job_id in sorted(sums)], MOVED_COLUMNS)


def runs_frame(runs: Iterable[Run]) -> pd.DataFrame:
    """First start of each claim at Slurm (or its job that never started), and the number of its starts."""
    rows = []
    for (job_id, claimed_at), mine in sorted(by_claim(runs).items()):
        first = first_run(mine)
        rows.append({
            "job_id": job_id, "claimed_at": claimed_at, "slurm_id": first.slurm_id, "slurm_state": first.state,
            "slurm_start": first.started_at, "slurm_end": first.ended_at, "starts": len(starts(mine)),
        })  # fmt: skip
    return _frame(rows, RUN_COLUMNS)


def by_claim(runs: Iterable[Run]) -> dict[tuple[int, int], list[Run]]:
    """Return the runs by claim. The key is the job and the time of the claim."""
    found: dict[tuple[int, int], list[Run]] = defaultdict(list)
    for run in runs:
        found[run.job_id, run.claimed_at].append(run)
    return found


def starts(runs: Iterable[Run]) -> list[Run]:
    """Return the runs that began, in this order. A start that the script refused does not count."""
    begun = (run for run in runs if run.started_at is not None and not run.guarded)
    return sorted(begun, key=lambda run: run.started_at or 0)


def first_run(runs: Iterable[Run]) -> Run:
    """Return the first run that began; else any run."""
    known = list(runs)
    return next(iter(starts(known)), replace(known[0], started_at=None))


def locked_at_end(ledger: Ledger, job_id: int) -> int:
    """Return the wei that a job had locked by the period's end, or brought into it. Earlier releases do not count."""
    job = ledger.jobs[job_id]
    later = sum(one.wei for one in ledger.top_ups.get(job_id, ()) if one.block > ledger.last_block)
    earlier = job.released_wei - sum(one.wei for one in ledger.releases.get(job_id, ()))
    return job.locked_wei - later - earlier


def released_in_period(ledger: Ledger, job_id: int) -> int:
    """Return the wei that came back in the period before the job's end."""
    return sum(one.wei for one in ledger.releases.get(job_id, ()) if ledger.in_period(one.block))


def _settled(ledger: Ledger, settlement: Settlement) -> dict[str, Any]:
    job = ledger.jobs[settlement.job_id]
    return {
        **_common(ledger, job.id), "outcome": SETTLED, "status": job.status.words, "provider": settlement.provider,
        "billed": settlement.billed_minutes, "paid": settlement.paid_wei, "cut": settlement.cut_wei,
        "refunded": settlement.refunded_wei + released_in_period(ledger, job.id), "still_locked": 0,
        "tx": settlement.tx_hash,
    }  # fmt: skip


def _open(ledger: Ledger, job_id: int) -> dict[str, Any]:
    job, common = ledger.jobs[job_id], _common(ledger, job_id)
    status = job.status.words if job.status.hot else "settled later"
    released = released_in_period(ledger, job_id)
    return {
        **common, "outcome": OPEN, "status": status, "provider": job.provider, "refunded": released,
        "still_locked": common["locked"] - released,
    }  # fmt: skip


def _common(ledger: Ledger, job_id: int) -> dict[str, Any]:
    """Common columns of settled and open jobs. An older job brings its deposit forward into the period."""
    job, locked = ledger.jobs[job_id], locked_at_end(ledger, job_id)
    topped_up = sum(one.wei for one in ledger.top_ups.get(job_id, ()) if ledger.in_period(one.block))
    return {
        "job_id": job_id, "claimed_at": job.claimed_at, "customer": job.customer, "locked": locked,
        "brought_forward": 0 if job_id in ledger.requested else locked - topped_up,
        "billed": 0, "paid": 0, "cut": 0, "refunded": 0, "tx": "",
    }  # fmt: skip


def _given_back(ledger: Ledger, provider: str) -> list[dict[str, Any]]:
    """Return claims of the period that were given back. Their money is in the books of the next provider."""
    blocks: dict[int, list[int]] = defaultdict(list)
    for one in ledger.given_back:
        if one.provider == provider:
            blocks[one.job_id].append(one.block)
    return [
        {
            "job_id": claim.job_id, "claimed_at": claim.at, "outcome": GIVEN_BACK, "status": GIVEN_BACK,
            "provider": provider, "customer": ledger.jobs[claim.job_id].customer, "locked": 0, "brought_forward": 0,
            "billed": 0, "paid": 0, "cut": 0, "refunded": 0, "still_locked": 0, "tx": claim.tx_hash,
        }
        for claim in ledger.claims
        if claim.provider == provider
        and ledger.in_period(claim.block)
        and any(block >= claim.block for block in blocks[claim.job_id])
        and ledger.jobs[claim.job_id].claimed_at != claim.at
    ]  # fmt: skip


def _is_held_by(ledger: Ledger, job_id: int, provider: str | None) -> bool:
    """Return whether the job belongs to these books. A provider's job must have been claimed by the period's end."""
    if provider is None:
        return True
    job = ledger.jobs[job_id]
    claimed_in = ledger.claim_blocks.get((job_id, job.claimed_at), 0)
    return job.provider == provider and job.claimed_at > 0 and claimed_in <= ledger.last_block


def _frame(rows: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame([[row[name] for name in columns] for row in rows], columns=columns, dtype=object)


MONEY = [
    "locked", "brought_forward", "paid", "cut", "refunded", "still_locked", "deposit", "top_up", "paid_out",
    "refund_out",
]  # fmt: skip


def join(ledger: Ledger, runs: Runs | None, provider: str | None = None) -> pd.DataFrame:
    """Return the outer join of the three sources, or of the first two if `runs` is None.

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
    """Return the rows as dicts, with unchanged values."""
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
