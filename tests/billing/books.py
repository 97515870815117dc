"""Books of a history, as its provider and as the operator keep them."""

from __future__ import annotations

from dataclasses import replace

from deepgrid.billing.entries import Runs, Span
from deepgrid.billing.reconcile import Reconciliation, reconcile
from tests.billing.histories import DAY, ME, History, Plan


def history(*some: Plan, span: Span = DAY) -> History:
    made = History(span)
    for plan in some:
        made.add(plan)
    return made


def provider_books(made: History, runs: Runs | None = None, tolerance: int = 1) -> Reconciliation:
    found = runs if runs is not None else made.slurm()
    ledger = replace(made.ledger(), jobs=made.jobs)  # jobs that Slurm names are read too, however old
    return reconcile("alpha", ledger, made.span, runs=found, provider=ME, tolerance_minutes=tolerance)


def operator_books(made: History) -> Reconciliation:
    return reconcile("grid", made.ledger(), made.span)
