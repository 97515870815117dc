"""Reconciles one party's books over one period: joins the entries, finds differences, sums up.

Each wei that a job locked must be paid, taken as the cut, refunded or still locked. Each transfer must belong to a
settlement. The operator's books must also explain the contract's balance. Amounts are exact Python ints.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from deepgrid.billing.columns.claims import Claims, Window, join, records
from deepgrid.billing.columns.entry_tables import EntryTables, tables_of
from deepgrid.billing.entries import ForeignJob, Ledger, Runs, Span
from deepgrid.billing.rules.differences import Side, findings
from deepgrid.billing.rules.kinds import Finding
from deepgrid.billing.rules.patterns import BillPatterns, Pattern
from deepgrid.billing.rules.prefilter import doubtful, lacks_runs, shared_runs
from deepgrid.billing.rules.refunds import PaidBack, Refunds
from deepgrid.billing.totals import Contract, Totals, TotalsOf, imbalances

if TYPE_CHECKING:
    import pandas as pd

NAMED_IN_MESSAGE = 10
NEVER_SETTLED_GRACE_S = 3600  # a job should be settled within an hour of its end in Slurm


@dataclass(frozen=True)
class Reconciliation:
    """The result. `claims` is the join; `imbalances` are sentences, empty in correct books.

    `paid_back` lists customers whose jobs failed repeatedly because of the cluster. `foreign` lists Slurm jobs without
    a claim. Both are hints for a person, not differences. So are some of the `patterns`. `undecided` means that
    accounting is late and lacks a run, so the period must be read again.
    """

    name: str
    span: Span
    claims: Claims | None
    differences: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    totals: Totals
    imbalances: tuple[str, ...]
    sources: str
    paid_back: tuple[PaidBack, ...] = ()
    foreign: tuple[ForeignJob, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    has_slurm: bool = False
    undecided: bool = False

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The claims with the names of their differences, as a pandas table. It is built on first access."""
        from deepgrid.billing.frames import frame

        assert self.claims is not None, "the rows of books by windows are not kept"
        named: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
        for one in self.differences:
            named[one.job_id, one.claimed_at].append(str(one.kind))
        keys = zip(self.claims.job_id.tolist(), self.claims.claimed_at.tolist(), strict=True)
        difference = [", ".join(dict.fromkeys(named[key])) if key in named else "" for key in keys]
        return frame(self.claims, difference, has_slurm=self.has_slurm)

    @property
    def clean(self) -> bool:
        return not self.differences and not self.imbalances

    @property
    def message(self) -> str:
        """One sentence: everything agrees, or these jobs differ. A second one follows if runs are missing."""
        again = " The next run reads the period again, because runs are missing." if self.undecided else ""
        return self._verdict + again

    @property
    def _verdict(self) -> str:
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


class Reconciler:
    """Reconciles books window by window, so that memory holds the jobs of one window. Windows share no job."""

    def __init__(
        self, name: str, window: Window, side: Side, *, reported: dict[int, int] | None = None, keep: bool = False
    ) -> None:
        self._name = name
        self._window = window
        self._side = side
        self._reported = reported or {}
        self._keep = keep
        self._patterns = BillPatterns(side.tolerance_minutes)
        self._totals = TotalsOf(window)
        self._found: list[Finding] = []
        self._refunds = Refunds()
        self._claims: Claims | None = None

    def add(self, tables: EntryTables) -> None:
        """Compare the entries of some jobs."""
        claims = join(tables, self._window)
        side = self._side
        chosen = doubtful(claims, side, self._reported)
        for claim in records(claims, chosen, self._reported):
            self._found += findings(claim, side)
        if side.has_slurm:
            self._patterns.add(claims)
        self._totals.add(claims)
        self._refunds.add(claims)
        self._claims = claims if self._keep else None

    def result(self, contract: Contract, runs: Runs | None = None) -> Reconciliation:
        """Return the result of all windows."""
        too_much = [*self._patterns.too_much()]
        found = sorted([*self._found, *too_much], key=lambda one: (one.job_id, one.claimed_at))
        totals = self._totals.totals(contract)
        return Reconciliation(
            name=self._name,
            span=self._side.span,
            claims=self._claims,
            differences=tuple(one for one in found if one.kind is not None),
            notes=tuple(one for one in found if one.kind is None),
            totals=totals,
            imbalances=tuple(imbalances(totals, contract)),
            sources="contract events, token transfers" + (f", {runs.source}" if runs else ""),
            paid_back=self._refunds.often(),
            foreign=runs.foreign if runs else (),
            patterns=self._patterns.patterns(),
            has_slurm=self._side.has_slurm and not self._side.partial,
            undecided=runs is not None and runs.late and self._claims is not None and lacks_runs(self._claims),
        )


def reconcile(
    name: str,
    ledger: Ledger,
    span: Span,
    *,
    runs: Runs | None = None,
    provider: str | None = None,
    tolerance_minutes: int = 1,
    never_settled_grace_s: int = NEVER_SETTLED_GRACE_S,
    late_s: int = 0,
) -> Reconciliation:
    """Reconcile the books of `provider` with the `runs` of its Slurm.

    Without `provider`, reconcile the whole grid, with the runs that providers signed in receipts, if any.
    """
    tables = tables_of(ledger, runs.runs if runs is not None else ())
    side = Side(
        span=span,
        tolerance_minutes=tolerance_minutes,
        never_settled_grace_s=never_settled_grace_s,
        has_slurm=runs is not None,
        complete=runs is not None and runs.complete,
        strays_wei=ledger.strays_wei,
        shared=shared_runs(tables.runs) if provider is not None else frozenset(),
        late_s=late_s,
        partial=runs is not None and runs.partial,
    )
    window = Window.of(ledger, provider)
    reconciler = Reconciler(name, window, side, reported=ledger.reported_too_much, keep=True)
    reconciler.add(tables)
    return reconciler.result(Contract.of(ledger), runs)


def reconcile_windows(
    name: str, windows: Iterable[EntryTables], window: Window, side: Side, contract: Contract
) -> Reconciliation:
    """Reconcile books window by window. Memory holds the entries of one window only. The result has no rows."""
    reconciler = Reconciler(name, window, side)
    for tables in windows:
        reconciler.add(tables)
    return reconciler.result(contract)


def needs_older_strays(ledger: Ledger) -> bool:
    """Return whether the contract holds more than the jobs, the cut and the period's stray transfers explain."""
    held = sum(job.held_wei for job in ledger.jobs.values())
    excess = ledger.balance_wei - ledger.platform_cut_wei - held
    return excess > ledger.strays_wei + ledger.older_strays_wei
