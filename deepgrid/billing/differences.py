"""Finds where contract, token and Slurm disagree about a claim. Each difference has a name and evidence.

An oddity that needs no action is a note, such as a job that was not billed because its provider failed. Customers
whose jobs fail repeatedly by the cluster's fault are found too. A single failure may be bad luck. Repeated ones may
mean that a customer can crash a node at the end of a job.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pandas as pd

from deepgrid.billing.credits import format_credits
from deepgrid.billing.entries import Ledger, Run, Runs, Span
from deepgrid.billing.expected import expected_bill
from deepgrid.billing.frames import GIVEN_BACK, OPEN, SETTLED, records, starts
from deepgrid.billing.period import format_time

TAKEN = "transferred in"

Row = dict[str, Any]


class Kind(StrEnum):
    """The names of differences."""

    MINUTES = "minutes"
    NEVER_SETTLED = "never settled"
    NO_RUN = "settled without a run"
    RAN_TWICE = "ran twice"
    TRANSFERS = "transfer mismatch"


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding on one claim: a difference if it has a `kind`, else a note."""

    job_id: int
    claimed_at: int
    kind: Kind | None
    evidence: str
    tx: str = ""


@dataclass(frozen=True)
class Side:
    """The data against which all rows are checked. `runs` is None in the operator's books, which have no Slurm."""

    ledger: Ledger
    runs: Runs | None
    runs_of: dict[tuple[int, int], list[Run]]
    span: Span
    tolerance_minutes: int
    never_settled_grace_s: int


def findings(row: Row, side: Side) -> Iterator[Finding]:
    """Yield all findings on one row of the join."""
    outcome = row["outcome"]
    if outcome in (SETTLED, OPEN):
        yield from _transfers(row, side)
    if side.runs is None:
        return
    if outcome == SETTLED:
        yield from _minutes(row, side)
    elif outcome == OPEN:
        yield from _unsettled(row, side)
    else:
        yield from _without_settlement(row, side)
    yield from _twice(row, side)


def _minutes(row: Row, side: Side) -> Iterator[Finding]:
    billed, expected = row["billed"], row["expected"]
    reported = side.ledger.reported_too_much.get(row["job_id"])
    if reported is not None:
        yield _finding(row, None, f"the provider reported {reported} minutes, more than can have passed; not billed")
    barred = any(run.guarded for run in side.runs_of.get((row["job_id"], row["claimed_at"]), ()))
    if row["slurm_start"] is None and billed > 0 and not (barred and billed <= expected):
        known = side.runs is not None and side.runs.complete
        evidence = f"{_billed(row)}, and Slurm shows no run of it"
        yield _finding(row, Kind.NO_RUN if known else None, evidence)
    elif billed > expected + side.tolerance_minutes:
        yield _finding(row, Kind.MINUTES, f"{_billed(row)}, {_ran(row)}: {expected} expected")
    elif billed < expected - side.tolerance_minutes:
        # A provider may always bill less. For its own faults it must.
        excused = row["status"] in ("panicked", "cancelled") or (billed == 0 and row["status"] == "failed")
        yield _finding(row, None if excused else Kind.MINUTES, f"{_billed(row)}, {_ran(row)}: {expected} expected")
    elif row["status"] == "panicked" and row["ran"] > 0:
        yield _finding(row, None, f"panicked and not billed, {_ran(row)}")


def _unsettled(row: Row, side: Side) -> Iterator[Finding]:
    ended_at, job = row["slurm_end"], side.ledger.jobs[row["job_id"]]
    if job.status.hot and ended_at is not None and ended_at < side.span.until - side.never_settled_grace_s:
        yield _finding(row, Kind.NEVER_SETTLED, f"still {job.status.words} on chain, {_ran(row)}")


def _without_settlement(row: Row, side: Side) -> Iterator[Finding]:
    """Yield a claim that was given back, or that only Slurm knows. Nothing should have run for it in the period."""
    begun = starts(side.runs_of.get((row["job_id"], row["claimed_at"]), []))
    run = begun[0] if begun else None
    if run is None or run.started_at is None:
        return
    if run.started_at >= side.span.until or (run.ended_at is not None and run.ended_at < side.span.since):
        return
    job = side.ledger.jobs.get(row["job_id"])
    if job is None:
        yield _finding(row, Kind.NEVER_SETTLED, f"the chain has no such job, {_ran(row)}")
    elif row["outcome"] == GIVEN_BACK or job.claimed_at != row["claimed_at"]:
        yield _finding(row, Kind.NEVER_SETTLED, f"the claim was given back, {_ran(row)}")
    elif job.status.cold and run.started_at > job.ended_at + 60 * side.tolerance_minutes:
        yield _finding(row, Kind.RAN_TWICE, f"settled at {format_time(job.ended_at)}, {_ran(row)}")


def _twice(row: Row, side: Side) -> Iterator[Finding]:
    begun = starts(side.runs_of.get((row["job_id"], row["claimed_at"]), []))
    if len(begun) > 1 and any(run.started_at is not None and run.started_at < side.span.until for run in begun[1:]):
        runs = "; ".join(
            f"Slurm job {run.slurm_id} from {format_time(run.started_at)} to {format_time(run.ended_at) or 'now'}"
            for run in begun
        )
        yield _finding(row, Kind.RAN_TWICE, f"{len(begun)} runs of one claim: {runs}")


def _transfers(row: Row, side: Side) -> Iterator[Finding]:
    """Compare the settlement with the job's terms, and the transfers with the settlement, to the wei."""
    job = side.ledger.jobs[row["job_id"]]
    pairs: list[tuple[str, int, str, int]] = []
    if row["job_id"] in side.ledger.requested:
        pairs.append(("locked", row["locked"], TAKEN, row["deposit"] + row["top_up"]))
    if row["outcome"] == SETTLED:
        terms = expected_bill(job, row["billed"])
        divided = row["paid"] + row["cut"] + row["refunded"]
        pairs += [
            ("locked", row["locked"], "divided", divided),
            ("to be paid by the terms", terms.paid, "settled", row["paid"]),
            ("the cut by the terms", terms.cut, "settled", row["cut"]),
            ("settled for the provider", row["paid"], "transferred", row["paid_out"]),
            ("settled for the customer", row["refunded"], "transferred", row["refund_out"]),
        ]
    for what, one, other_what, other in pairs:
        if one == other:
            continue
        evidence = f"{what}: {format_credits(one)} credits, {other_what}: {format_credits(other)}"
        if other_what == TAKEN and 0 < one - other <= side.ledger.strays_wei:
            yield _finding(row, None, f"{evidence}; the rest can have come through another contract")
        else:
            yield _finding(row, Kind.TRANSFERS, evidence)


def _billed(row: Row) -> str:
    return f"billed {row['billed']} {'minute' if row['billed'] == 1 else 'minutes'} as {row['status']}"


def _ran(row: Row) -> str:
    begin, end = format_time(row["slurm_start"]), format_time(row["slurm_end"])
    if not begin:
        return "did not run in Slurm"
    which = f"{row['slurm_state']}, Slurm job {row['slurm_id']}"
    return f"ran {row['ran']} in Slurm ({begin} to {end or 'now'} UTC, {which})"


def _finding(row: Row, kind: Kind | None, evidence: str) -> Finding:
    return Finding(row["job_id"], row["claimed_at"], kind, evidence, row["tx"] or "")


OFTEN = 3  # ends of one customer within the period
FAILURES = ("failed", "panicked")


@dataclass(frozen=True, slots=True)
class PaidBack:
    """A customer, the jobs that ran and were fully refunded, and their started minutes."""

    customer: str
    job_ids: tuple[int, ...]
    minutes: int


def paid_back(rows: pd.DataFrame, ledger: Ledger) -> tuple[PaidBack, ...]:
    """Return customers with at least `OFTEN` such jobs, sorted by number."""
    jobs: dict[str, list[int]] = defaultdict(list)
    minutes: dict[str, int] = defaultdict(int)
    for row in records(rows):
        if row["outcome"] != SETTLED or row["status"] not in FAILURES or row["billed"] > 0:
            continue
        if ledger.jobs[row["job_id"]].started_at > 0 or row["ran"] > 0:
            jobs[row["customer"]].append(row["job_id"])
            minutes[row["customer"]] += row["ran"]
    often = [PaidBack(who, tuple(found), minutes[who]) for who, found in jobs.items() if len(found) >= OFTEN]
    return tuple(sorted(often, key=lambda one: (-len(one.job_ids), one.customer)))
