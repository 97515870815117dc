"""Joins the entries of the books: one row per claim, as arrays of equal length.

A row has the key `job_id` and `claimed_at`. A job without a claim has `claimed_at` 0. Joins are searches in sorted
ids. Rows become Python objects only where a rule or a reader asks for them (`records`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepgrid.billing.columns.claim_record import GIVEN_BACK, OPEN, SETTLED, Amounts, ClaimRecord
from deepgrid.billing.columns.entry_tables import (
    MISSING,
    EntryTables,
    amounts,
    flags,
    job_in,
    numbers,
    run_in,
    settlement_in,
    tables_of,
    words,
)
from deepgrid.billing.columns.job_sums import JobSums, job_sums, match
from deepgrid.billing.columns.run_groups import RunGroups, group_runs
from deepgrid.billing.entries import Ledger, Run
from deepgrid.lifecycle.ends import ENDS
from deepgrid.lifecycle.job import ANSWER_MINUTES
from deepgrid.lifecycle.states import JobStatus

Array = np.ndarray[Any, Any]
OUTCOMES = (None, SETTLED, OPEN, GIVEN_BACK)
OF_SLURM, IS_SETTLED, IS_OPEN, IS_GIVEN_BACK = range(4)
MONEY = tuple(Amounts.__dataclass_fields__)
_FAULTS = [state for state, end in ENDS.items() if not end.billed]


@dataclass(frozen=True)
class Window:
    """The period of the books in blocks, and whose books they are."""

    first_block: int
    last_block: int
    provider: str | None

    @classmethod
    def of(cls, ledger: Ledger, provider: str | None) -> Window:
        """Return the window of a ledger."""
        return cls(ledger.first_block, ledger.last_block, provider)


@dataclass(frozen=True)
class Claims:
    """The rows. `job`, `settlement`, `given_back` and the runs are places in the tables, -1 where there is none."""

    tables: EntryTables
    sums: JobSums
    job_id: Array
    claimed_at: Array
    outcome: Array
    job: Array
    settlement: Array
    given_back: Array
    runs: RunGroups
    money: dict[str, Array]
    billed: Array
    expected: Array

    def of_job(self, name: str) -> Array:
        """Return a figure of each row's job; 0 where the chain does not know it."""
        return _take(numbers(self.tables.jobs, name), self.job)

    def addresses(self, who: str) -> list[str | None]:
        """Return the `provider` or `customer` of each row."""
        codes, names = words(self.tables.jobs, who)
        found = _take(codes, self.job, -1)
        settled, settled_names = words(self.tables.settlements, who)
        by_end = _take(settled, self.settlement, -1)
        return [
            settled_names[end] if end >= 0 else names[code] if code >= 0 else None
            for end, code in zip(by_end.tolist(), found.tolist(), strict=True)
        ]


def join(tables: EntryTables, window: Window) -> Claims:
    """Return the claims that were settled, open or given back at the period's end, and claims that only Slurm knows."""
    sums = job_sums(tables, window.first_block, window.last_block)
    settlement, is_open = _outcomes(tables, sums, window)
    kept = np.flatnonzero((settlement >= 0) | is_open)
    ids, claimed_at = numbers(tables.jobs, "id"), numbers(tables.jobs, "claimed_at")
    back = _given_back(tables, window) if window.provider is not None else np.zeros(0, np.int64)
    back_job = match(ids, numbers(tables.claims, "job_id")[back])
    keys = (
        np.concatenate([ids[kept], ids[back_job]]),
        np.concatenate([claimed_at[kept], numbers(tables.claims, "at")[back]]),
    )
    runs, extra = group_runs(tables.runs, *keys)
    only, nothing = len(extra[0]), np.full(len(extra[0]), -1)
    order = np.lexsort((np.concatenate([keys[1], extra[1]]), np.concatenate([keys[0], extra[0]])))
    job = np.concatenate([kept, back_job, match(ids, extra[0])])[order]
    outcome = np.concatenate(
        [
            np.where(settlement[kept] >= 0, IS_SETTLED, IS_OPEN),
            np.full(len(back), IS_GIVEN_BACK),
            np.full(only, OF_SLURM),
        ]
    )[order]
    settled = np.concatenate([settlement[kept], np.full(len(back), -1), nothing])[order]
    runs = runs.taken(order)
    return Claims(
        tables=tables,
        sums=sums,
        job_id=np.concatenate([keys[0], extra[0]])[order],
        claimed_at=np.concatenate([keys[1], extra[1]])[order],
        outcome=outcome,
        job=job,
        settlement=settled,
        given_back=np.concatenate([np.full(len(kept), -1), back, nothing])[order],
        runs=runs,
        money=_money(tables, sums, job, outcome, settled),
        billed=_take(numbers(tables.settlements, "billed_minutes"), settled),
        expected=_expected_minutes(tables, job, outcome, runs),
    )


def claims_of(ledger: Ledger, runs: Sequence[Run] = (), provider: str | None = None) -> Claims:
    """Return the claims in a ledger, with the `runs` of Slurm."""
    return join(tables_of(ledger, runs), Window.of(ledger, provider))


def records(claims: Claims, rows: Array, reported: dict[int, int] | None = None) -> Iterator[ClaimRecord]:
    """Yield these rows as objects."""
    tables = claims.tables
    job_at, settlement_at = claims.job[rows], claims.settlement[rows]
    jobs = [job_in(row) for row in tables.jobs.take(np.maximum(job_at, 0)).to_pylist()] if len(tables.jobs) else []
    ends = tables.settlements.take(np.maximum(settlement_at, 0)).to_pylist() if len(tables.settlements) else []
    places, counts = claims.runs.places(rows)
    runs = iter([run_in(row) for row in tables.runs.take(places).to_pylist()])
    backs = tables.claims["tx_hash"].take(np.maximum(claims.given_back[rows], 0)) if len(tables.claims) else []
    requested = numbers(tables.jobs, "requested_in") != MISSING
    money = [claims.money[name][rows] for name in MONEY]
    for at, row in enumerate(rows.tolist()):
        job = jobs[at] if job_at[at] >= 0 else None
        last = settlement_in(ends[at]) if settlement_at[at] >= 0 else None
        tx = last.tx_hash if last else str(backs[at]) if claims.given_back[row] >= 0 else ""
        job_id = int(claims.job_id[row])
        yield ClaimRecord(
            job_id=job_id,
            claimed_at=int(claims.claimed_at[row]),
            outcome=OUTCOMES[claims.outcome[row]],
            job=job,
            amounts=Amounts(*(column[at] for column in money)),
            requested=job is not None and bool(requested[job_at[at]]),
            settlements=int(claims.sums.settlements[job_at[at]]) if job else 0,
            last=last,
            runs=tuple(next(runs) for _ in range(counts[at])),
            reported=(reported or {}).get(job_id),
            expected=int(claims.expected[row]),
            tx=tx,
        )


def _outcomes(tables: EntryTables, sums: JobSums, window: Window) -> tuple[Array, Array]:
    """Return for each job its settlement in the period, or -1, and whether it is open at the period's end."""
    jobs, ends = tables.jobs, tables.settlements
    ids, blocks = numbers(jobs, "id"), numbers(ends, "block")
    at = match(ids, numbers(ends, "job_id"))
    settled = np.full(len(ids), -1)
    inside = (at >= 0) & (blocks >= window.first_block) & (blocks <= window.last_block)
    settled[at[inside]] = np.flatnonzero(inside)
    is_hot = numbers(jobs, "status") <= int(JobStatus.RUNNING)
    requested = numbers(jobs, "requested_in")
    is_open = (settled < 0) & (is_hot | (sums.settlements > 0)) & (requested <= window.last_block)
    if window.provider is not None:
        is_open &= _is_held(tables, window, ids)
        theirs = settled[settled >= 0]
        codes, names = words(ends, "provider")
        foreign = np.array([name != window.provider for name in names], dtype=bool)
        settled[np.flatnonzero(settled >= 0)[foreign[codes[theirs]]]] = -1
    return settled, is_open


def _is_held(tables: EntryTables, window: Window, ids: Array) -> Array:
    """Return which jobs the provider had claimed by the period's end."""
    codes, names = words(tables.jobs, "provider")
    mine = np.array([*(name == window.provider for name in names), False], dtype=bool)[codes]
    claimed_at, claims = numbers(tables.jobs, "claimed_at"), tables.claims
    at = match(ids, numbers(claims, "job_id"))
    current = (at >= 0) & (numbers(claims, "at") == claimed_at[at]) if len(ids) else at >= 0
    blocks = np.zeros(len(ids), np.int64)
    blocks[at[current]] = numbers(claims, "block")[current]
    return np.asarray(mine & (claimed_at > 0) & (blocks <= window.last_block))


def _given_back(tables: EntryTables, window: Window) -> Array:
    """Return the claims of the period that were given back. Their money is in the books of the next provider."""
    ids, claims = numbers(tables.jobs, "id"), tables.claims
    if not len(ids):
        return np.zeros(0, np.int64)
    back_at = match(ids, numbers(tables.given_back, "job_id"))
    known = (back_at >= 0) & _is_by(tables.given_back, window.provider)
    returned = np.full(len(ids), -1)
    returned[back_at[known]] = numbers(tables.given_back, "block")[known]  # the last time
    at, blocks = match(ids, numbers(claims, "job_id")), numbers(claims, "block")
    found = (at >= 0) & _is_by(claims, window.provider)
    found &= (blocks >= window.first_block) & (blocks <= window.last_block) & (returned[at] >= blocks)
    return np.flatnonzero(found & (numbers(tables.jobs, "claimed_at")[at] != numbers(claims, "at")))


def _is_by(table: Any, provider: str | None) -> Array:
    codes, names = words(table, "provider")
    return np.asarray(np.array([*(name == provider for name in names), False], dtype=bool)[codes])


def _money(tables: EntryTables, sums: JobSums, job: Array, outcome: Array, settled: Array) -> dict[str, Array]:
    """Return the credits of each row. An older job brings its deposit forward into the period."""
    mine = np.where((outcome == IS_SETTLED) | (outcome == IS_OPEN), job, -1)
    ends = tables.settlements
    found = {name: _take(getattr(sums, name), mine) for name in ("locked", "brought_forward")}
    found |= {name: _take(getattr(sums, name), mine) for name in ("deposit", "top_up", "paid_out", "refund_out")}
    found |= {name: _take(amounts(ends, f"{name}_wei"), settled) for name in ("paid", "cut", "refunded")}
    released = _take(sums.released, mine)
    found["refunded"] = found["refunded"] + released
    found["still_locked"] = np.where(outcome == IS_OPEN, found["locked"] - released, 0)
    return found


def _expected_minutes(tables: EntryTables, job: Array, outcome: Array, runs: RunGroups) -> Array:
    """Return the minutes that each settled row should bill, by the terms of its job."""

    def of(name: str) -> Array:
        return _take(numbers(tables.jobs, name), job)

    states, names = words(tables.runs, "state")
    faults = np.array([*(name in _FAULTS for name in names), False], dtype=bool)
    is_fault = faults[_take(states, runs.first, -1)]
    minutes = np.minimum(np.where(is_fault, 0, runs.minutes), of("granted_minutes"))
    status, asked = of("status"), _take(flags(tables.jobs, "has_cancel_request"), job)
    until = np.minimum(of("ended_at"), of("cancel_requested_at") + 60 * ANSWER_MINUTES)
    passed = np.maximum(0, -((of("started_at") - until) // 60))
    minutes = np.where(asked, np.minimum(minutes, passed), minutes)
    minutes = np.where(of("ended_at") <= of("started_at"), 0, minutes)  # no time passed on the chain
    fee = np.minimum(of("fee_minutes"), of("granted_minutes"))
    cancelled = (status == int(JobStatus.CANCELLED)) & asked
    minutes = np.where(cancelled, np.maximum(minutes, fee), minutes)
    free = (of("started_at") == 0) | (status == int(JobStatus.PANICKED)) | (outcome != IS_SETTLED)
    return np.where(free, 0, minutes)


def _take(values: Array, places: Array, nothing: Any = 0) -> Array:
    """Return the values at these places; `nothing` for -1."""
    if not len(values):
        return np.full(len(places), nothing, dtype=values.dtype)
    return np.where(places >= 0, values[places], nothing)
