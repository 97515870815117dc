"""The entries of the books as pandas tables, and their join. Columns hold Python objects, so wei stay exact.

There is one row per claim, with the key `job_id` and `claimed_at`. A job without a claim has `claimed_at` 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from deepgrid.billing.entries import Ledger, Purpose, Run, Runs, Settlement
from deepgrid.billing.expected import expected_minutes, run_minutes
from deepgrid.lifecycle.job import Job

KEY = ["job_id", "claimed_at"]
SETTLED, OPEN, GIVEN_BACK = "settled", "open", "given back"

FIGURES = ["locked", "brought_forward", "billed", "paid", "cut", "refunded", "still_locked"]
DIVIDED = [name for name in FIGURES if name != "billed"]
MOVED = ["deposit", "top_up", "paid_out", "refund_out"]
MONEY = [*DIVIDED, *MOVED]
CHAIN_COLUMNS = [*KEY, "outcome", "status", "provider", "customer", *FIGURES, "tx"]
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
            rows.append(_open(ledger, job))
    if provider is not None:
        rows += _given_back(ledger, provider)
    return _frame(([row[name] for name in CHAIN_COLUMNS] for row in rows), CHAIN_COLUMNS)


def moved_frame(ledger: Ledger) -> pd.DataFrame:
    """Wei transferred for each job in the period: deposit and top-ups in, payments to provider and customer out."""
    purposes = (Purpose.DEPOSIT, Purpose.TOP_UP, Purpose.PAID, Purpose.REFUND)
    columns = dict(zip(purposes, MOVED, strict=True)) | {Purpose.RELEASE: "refund_out"}
    sums: dict[int, dict[str, int]] = defaultdict(lambda: dict.fromkeys(MOVED, 0))
    for transfer in ledger.transfers:
        if transfer.job_id is not None and ledger.in_period(transfer.block):
            sums[transfer.job_id][columns[transfer.purpose]] += transfer.wei
    return _frame(([job_id, *sums[job_id].values()] for job_id in sorted(sums)), ["job_id", *MOVED])


def runs_frame(runs: Iterable[Run]) -> pd.DataFrame:
    """First start of each claim at Slurm (or its job that never started), and the number of its starts."""
    rows = []
    for claim, mine in sorted(by_claim(runs).items()):
        run = first_run(mine)
        rows.append([*claim, run.slurm_id, run.state, run.started_at, run.ended_at, len(starts(mine))])
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


def _settled(ledger: Ledger, end: Settlement) -> dict[str, Any]:
    job = ledger.jobs[end.job_id]
    refunded = end.refunded_wei + released_in_period(ledger, job.id)
    figures = {"billed": end.billed_minutes, "paid": end.paid_wei, "cut": end.cut_wei, "refunded": refunded}
    about = {"outcome": SETTLED, "status": job.status.words, "provider": end.provider, "tx": end.tx_hash}
    return _with_deposit(ledger, job) | figures | about


def _open(ledger: Ledger, job: Job) -> dict[str, Any]:
    row, released = _with_deposit(ledger, job), released_in_period(ledger, job.id)
    status = job.status.words if job.status.hot else "settled later"
    about = {"outcome": OPEN, "status": status, "provider": job.provider}
    return row | about | {"refunded": released, "still_locked": row["locked"] - released}


def _with_deposit(ledger: Ledger, job: Job) -> dict[str, Any]:
    """Return the row of a settled or open job. An older job brings its deposit forward into the period."""
    locked = locked_at_end(ledger, job.id)
    topped_up = sum(one.wei for one in ledger.top_ups.get(job.id, ()) if ledger.in_period(one.block))
    brought_forward = 0 if job.id in ledger.requested else locked - topped_up
    return _row(job, job.claimed_at) | {"locked": locked, "brought_forward": brought_forward}


def _row(job: Job, claimed_at: int) -> dict[str, Any]:
    """Return the row of a claim. All its figures are 0."""
    return {"job_id": job.id, "claimed_at": claimed_at, "customer": job.customer, "tx": "", **dict.fromkeys(FIGURES, 0)}


def _given_back(ledger: Ledger, provider: str) -> list[dict[str, Any]]:
    """Return claims of the period that were given back. Their money is in the books of the next provider."""
    returned_in = {one.job_id: one.block for one in ledger.given_back if one.provider == provider}  # the last time
    about = {"outcome": GIVEN_BACK, "status": GIVEN_BACK, "provider": provider}
    return [
        _row(ledger.jobs[claim.job_id], claim.at) | about | {"tx": claim.tx_hash}
        for claim in ledger.claims
        if claim.provider == provider
        and ledger.in_period(claim.block)
        and returned_in.get(claim.job_id, -1) >= claim.block
        and ledger.jobs[claim.job_id].claimed_at != claim.at
    ]


def _is_held_by(ledger: Ledger, job_id: int, provider: str | None) -> bool:
    """Return whether the job belongs to these books. A provider's job must have been claimed by the period's end."""
    if provider is None:
        return True
    job = ledger.jobs[job_id]
    claimed_in = ledger.claim_blocks.get((job_id, job.claimed_at), 0)
    return job.provider == provider and job.claimed_at > 0 and claimed_in <= ledger.last_block


def _frame(rows: Iterable[Sequence[Any]], columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=columns, dtype=object)


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
    expected = [
        expected_minutes(ledger, key[0], known.get(key)) if runs is not None and outcome == SETTLED else None
        for key, outcome in zip(keys, rows["outcome"], strict=True)
    ]
    rows["expected"] = _objects(expected)
    return rows.sort_values(KEY, ignore_index=True)


def records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as dicts, with unchanged values."""
    return [dict(zip(rows.columns, values, strict=True)) for values in rows.itertuples(index=False, name=None)]


def _plain(rows: pd.DataFrame) -> pd.DataFrame:
    """Replace empty values of the join by None, and by 0 for money."""
    rows = rows.astype(object).where(rows.notna(), None)
    for column in (name for name in MONEY if name in rows):
        rows[column] = _objects([0 if value is None else value for value in rows[column]])
    return rows


def _objects(values: list[Any]) -> pd.Series[Any]:
    return pd.Series(values, dtype=object)
