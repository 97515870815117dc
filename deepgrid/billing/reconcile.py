"""Reconciles one party's books over one period: joins the entries, finds differences, sums up.

Each wei that a job had locked must be paid, cut, refunded or still locked. Each transfer must belong to a
settlement. In the operator's books, the contract's balance must be explained too. Amounts are exact Python ints.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

import pandas as pd

from deepgrid.billing.credits import format_credits
from deepgrid.billing.differences import Finding, PaidBack, Side, findings, paid_back
from deepgrid.billing.entries import ForeignJob, Ledger, Purpose, Runs, Span
from deepgrid.billing.frames import DIVIDED, GIVEN_BACK, by_claim, join, records

NAMED_IN_MESSAGE = 10
NEVER_SETTLED_GRACE_S = 3600  # a job should be settled within an hour of its end in Slurm


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums in wei: of the jobs in the books, of their transfers, and of the contract's balance now.

    The contract's figures cover the whole grid. `deposits` is None in the books of one provider.
    """

    jobs: int
    brought_forward: int
    taken: int
    locked: int
    paid: int
    cut: int
    refunded: int
    still_locked: int
    paid_out: int
    refund_out: int
    withdrawn: int
    strays: int
    platform_cut: int
    balance: int
    deposits: int | None = None


@dataclass(frozen=True)
class Reconciliation:
    """The result. `rows` is the join; `imbalances` are sentences, empty in correct books.

    `paid_back` are customers whose jobs failed repeatedly by the cluster's fault. `foreign` are Slurm jobs without a
    claim. Both are hints for a person, not differences.
    """

    name: str
    span: Span
    rows: pd.DataFrame
    differences: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    totals: Totals
    imbalances: tuple[str, ...]
    sources: str
    paid_back: tuple[PaidBack, ...] = ()
    foreign: tuple[ForeignJob, ...] = ()

    @property
    def clean(self) -> bool:
        return not self.differences and not self.imbalances

    @property
    def message(self) -> str:
        """One sentence: everything agrees, or which jobs differ, and how."""
        of = f"{self.totals.jobs} {'job' if self.totals.jobs == 1 else 'jobs'}"
        if self.clean:
            return (
                f"{of} {'agrees' if self.totals.jobs == 1 else 'agree'}, and the totals balance to the wei."
                if self.totals.jobs
                else "No job in the period."
            )
        jobs = len({one.job_id for one in self.differences})
        named = [f"job {one.job_id} ({one.kind})" for one in self.differences[:NAMED_IN_MESSAGE]]
        named += [f"{len(self.differences) - len(named)} more"] if len(self.differences) > len(named) else []
        differs = "differs" if jobs == 1 else "differ"
        differ = f"{jobs} of {of} {differs}: {', '.join(named)}." if named else f"{of}, and none differs by itself."
        return " ".join([*self.imbalances, differ])


def reconcile(
    name: str,
    ledger: Ledger,
    span: Span,
    *,
    runs: Runs | None = None,
    provider: str | None = None,
    tolerance_minutes: int = 1,
    never_settled_grace_s: int = NEVER_SETTLED_GRACE_S,
) -> Reconciliation:
    """Reconcile the books of `provider` with the `runs` of its Slurm; without both, reconcile the whole grid."""
    rows = join(ledger, runs, provider)
    runs_of = by_claim(runs.runs if runs is not None else ())
    side = Side(ledger, runs, runs_of, span, tolerance_minutes, never_settled_grace_s)
    found = [finding for row in records(rows) for finding in findings(row, side)]
    rows = _shown(rows, found)
    totals = _totals(ledger, rows, provider)
    differences = tuple(one for one in found if one.kind is not None)
    notes = tuple(one for one in found if one.kind is None)
    imbalances, repaid = tuple(_imbalances(ledger, totals)), paid_back(rows, ledger)
    sources = "contract events, token transfers" + (f", {runs.source}" if runs else "")
    foreign = runs.foreign if runs else ()
    return Reconciliation(
        name=name, span=span, rows=rows, differences=differences, notes=notes, totals=totals, imbalances=imbalances,
        sources=sources, paid_back=repaid, foreign=foreign,
    )  # fmt: skip


def needs_older_strays(ledger: Ledger) -> bool:
    """Return whether the contract holds more than the jobs, the cut and the period's strays explain."""
    return _excess(ledger) > ledger.strays_wei + ledger.older_strays_wei


def _shown(rows: pd.DataFrame, found: list[Finding]) -> pd.DataFrame:
    """Return the rows, each with the names of its differences.

    Rows that only Slurm knows are shown only if they differ.
    """
    kinds: dict[tuple[int, int], list[str]] = defaultdict(list)
    for one in found:
        if one.kind is not None:
            kinds[one.job_id, one.claimed_at].append(one.kind)
    keys = list(zip(rows["job_id"], rows["claimed_at"], strict=True))
    named = [", ".join(dict.fromkeys(kinds[key])) for key in keys]
    rows = rows.assign(difference=pd.Series(named, dtype=object, index=rows.index))
    return rows[rows["outcome"].notna() | (rows["difference"] != "")].reset_index(drop=True)


def _totals(ledger: Ledger, rows: pd.DataFrame, provider: str | None) -> Totals:
    moves = [one for one in ledger.transfers if ledger.in_period(one.block)]
    moved: Counter[Purpose] = Counter()
    for one in moves:
        moved[one.purpose] += one.wei
    taken, paid_out = moved[Purpose.DEPOSIT] + moved[Purpose.TOP_UP], moved[Purpose.PAID]
    refund_out = moved[Purpose.REFUND] + moved[Purpose.RELEASE]
    if provider is not None:
        taken, refund_out = sum(rows["deposit"]) + sum(rows["top_up"]), sum(rows["refund_out"])
        paid_out = sum(one.wei for one in moves if one.purpose is Purpose.PAID and one.payee == provider)
    return Totals(
        jobs=len({row["job_id"] for row in records(rows) if row["outcome"] not in (None, GIVEN_BACK)}),
        **{column: sum(rows[column]) for column in DIVIDED},
        taken=taken,
        paid_out=paid_out,
        refund_out=refund_out,
        withdrawn=moved[Purpose.WITHDRAWAL],
        strays=moved[Purpose.STRAY],
        platform_cut=ledger.platform_cut_wei,
        balance=ledger.balance_wei,
        deposits=_deposits(ledger) if provider is None else None,
    )


def _imbalances(ledger: Ledger, totals: Totals) -> list[str]:
    divided = totals.paid + totals.cut + totals.refunded + totals.still_locked
    strays = ledger.strays_wei
    checks = [
        ("Locked", totals.locked, "paid, cut, refunded and still locked", divided, 0),
        ("Locked", totals.locked, "brought forward and transferred in", totals.brought_forward + totals.taken, strays),
        ("Settled for providers", totals.paid, "transferred to them", totals.paid_out, 0),
        ("Settled for customers", totals.refunded, "transferred to them", totals.refund_out, 0),
    ]
    found = [
        f"{what} {format_credits(one)} credits, {other_what} {format_credits(other)}."
        for what, one, other_what, other, allowed in checks
        if not 0 <= one - other <= allowed
    ]
    if totals.deposits is not None and not 0 <= _excess(ledger) <= strays + ledger.older_strays_wei:
        found.append(
            f"The contract holds {format_credits(totals.balance)} credits; deposits of hot jobs and the cut are"
            f" {format_credits(totals.deposits + totals.platform_cut)}."
        )
    return found


def _excess(ledger: Ledger) -> int:
    return ledger.balance_wei - ledger.platform_cut_wei - _deposits(ledger)


def _deposits(ledger: Ledger) -> int:
    return sum(job.held_wei for job in ledger.jobs.values())
