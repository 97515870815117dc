"""Books of a history, as its provider and the operator keep them."""

from __future__ import annotations

from dataclasses import replace

from deepgrid.billing.entries import Purpose, Runs, Span
from deepgrid.billing.formulas import bill
from deepgrid.billing.reconcile import Reconciliation, reconcile
from deepgrid.billing.rules.kinds import Kind
from tests.billing.histories import CUSTOMER, CUT_PERCENT, DAY, ME, History, Plan

HOUR = 3600


def history(*some: Plan, span: Span = DAY) -> History:
    made = History(span)
    for plan in some:
        made.add(plan)
    return made


def provider_books(made: History, runs: Runs | None = None, tolerance: int = 1) -> Reconciliation:
    found = runs if runs is not None else made.slurm()
    ledger = replace(made.ledger(), jobs=made.jobs)  # jobs in Slurm's records are read too, at any age
    return reconcile("alpha", ledger, made.span, runs=found, provider=ME, tolerance_minutes=tolerance)


def operator_books(made: History) -> Reconciliation:
    return reconcile("grid", made.ledger(), made.span)


def kinds(books: Reconciliation) -> list[tuple[int, Kind | None]]:
    return [(one.job_id, one.kind) for one in books.differences]


def bill_more(made: History, more: int) -> None:
    """Let the settlement of job 1 bill `more` minutes than it should, with matching transfers."""
    settled = made.settlements[0]
    job = made.jobs[settled.job_id]
    minutes = settled.billed_minutes + more
    parts = bill(minutes, job.rate_wei_per_minute, job.locked_wei, CUT_PERCENT)
    made.platform_cut += parts.cut - settled.cut_wei
    made.settlements[0] = replace(
        settled, billed_minutes=minutes, paid_wei=parts.paid, cut_wei=parts.cut, refunded_wei=parts.refunded
    )
    for purpose, payee, wei in ((Purpose.PAID, ME, parts.paid), (Purpose.REFUND, CUSTOMER, parts.refunded)):
        standing = [t for t in made.transfers if (t.job_id, t.purpose) == (job.id, purpose)]
        old = sum(t.wei for t in standing)
        made.transfers = [t for t in made.transfers if t not in standing]
        if wei:
            made.move(purpose, job.id, "", payee, wei, settled.at)
        made.balance += old
