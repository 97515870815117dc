"""Honest histories never differ and balance to the wei. Every error gets its name."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepgrid.billing.entries import Purpose, Run, Runs
from deepgrid.billing.reconcile import needs_older_strays, reconcile
from deepgrid.billing.rules.kinds import Kind
from deepgrid.lifecycle.ends import ENDED_EARLY
from deepgrid.lifecycle.states import JobStatus
from tests.billing.books import HOUR, bill_more, history, kinds, operator_books, provider_books
from tests.billing.histories import CREDIT, DAY, ME, MIDNIGHT, History, Plan, plans

S = JobStatus
MONEY_KINDS = {Kind.DEPOSIT, Kind.TRANSFERS, Kind.REFUND, Kind.DIVISION}


@settings(max_examples=50, deadline=None)
@given(st.lists(plans, max_size=8), st.lists(st.integers(1, 10**30), max_size=2))
def test_honest_histories_never_differ_and_balance(some: list[Plan], gifts: list[int]) -> None:
    made = history(*some)
    for wei in gifts:
        made.stray(wei)
    others = {job for job, one in made.jobs.items() if one.provider != ME}
    mine = Runs(tuple(run for run in made.runs if run.job_id not in others))
    for books in (provider_books(made, mine), operator_books(made)):
        assert books.differences == ()
        assert books.imbalances == ()
        assert books.clean


@settings(max_examples=50, deadline=None)
@given(plans, st.lists(plans, max_size=3), st.integers(2, 10**5))
def test_too_many_minutes_are_always_named(wrong: Plan, others: list[Plan], more: int) -> None:
    wrong = replace(
        wrong, end=S.FINISHED, submit=MIDNIGHT + HOUR, cancel_requested=False, fault=False, provider=ME,
        locked=10**38,
    )  # fmt: skip
    made = history(wrong, *(replace(one, provider=ME) for one in others))
    bill_more(made, more)
    books = provider_books(made)
    assert kinds(books) == [(1, Kind.MINUTES)]
    assert books.imbalances == ()  # the money went to the recipients of the settlement
    assert "job 1 (minutes)" in books.message


@settings(max_examples=50, deadline=None)
@given(st.lists(plans, min_size=1, max_size=4), st.data())
def test_a_wei_that_went_elsewhere_is_always_named(some: list[Plan], data: st.DataObject) -> None:
    made = history(*(replace(one, provider=ME, submit=MIDNIGHT + HOUR) for one in some))
    at = data.draw(st.integers(0, len(made.transfers) - 1))
    off = data.draw(st.integers(1, 10**20))
    moved = made.transfers[at]
    made.transfers[at] = replace(moved, wei=moved.wei + off)
    made.balance += off if moved.purpose in (Purpose.DEPOSIT, Purpose.TOP_UP) else -off
    books = operator_books(made)
    assert any(job == moved.job_id and kind in MONEY_KINDS for job, kind in kinds(books))
    assert books.imbalances


@settings(max_examples=50, deadline=None)
@given(plans, st.lists(plans, max_size=3), st.sampled_from([Kind.NO_RUN, Kind.RAN_TWICE, Kind.NEVER_SETTLED]))
def test_a_difference_to_slurm_is_always_named(wrong: Plan, others: list[Plan], kind: Kind) -> None:
    end = S.RUNNING if kind is Kind.NEVER_SETTLED else S.FINISHED
    wrong = replace(
        wrong, end=end, submit=MIDNIGHT + HOUR, cancel_requested=False, fault=False, provider=ME, locked=10**38
    )
    made = history(wrong, *(replace(one, provider=ME) for one in others))
    first, *rest = made.runs
    if kind is Kind.NO_RUN:
        changed = []
    elif kind is Kind.RAN_TWICE:
        changed = [first, replace(first, slurm_id=999, started_at=MIDNIGHT + 12 * HOUR)]
    else:
        changed = [replace(first, state="COMPLETED", ended_at=MIDNIGHT + 12 * HOUR)]
    assert kinds(provider_books(made, Runs((*changed, *rest)))) == [(1, kind)]


# -- each difference by itself ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "state", "differs"),
    [
        (S.OUT_OF_CREDITS, "COMPLETED", True), (S.OUT_OF_CREDITS, "FAILED", True),
        (S.OUT_OF_CREDITS, "OUT_OF_MEMORY", True), (S.OUT_OF_CREDITS, "TIMEOUT", False),
        (S.CANCELLED, "COMPLETED", True), (S.CANCELLED, "FAILED", True), (S.CANCELLED, "CANCELLED", False),
        (S.FAILED, "TIMEOUT", True), (S.FAILED, "COMPLETED", True), (S.FAILED, "DEADLINE", False),
        (S.FINISHED, "TIMEOUT", True),
    ],
)  # fmt: skip
def test_an_end_that_slurm_did_not_report_is_named(end: S, state: str, differs: bool) -> None:
    made = history(Plan(end=end))
    made.runs[0] = replace(made.runs[0], state=state)
    assert kinds(provider_books(made)) == ([(1, Kind.ANOTHER_END)] if differs else [])


def test_ends_that_the_site_or_the_customer_caused_agree() -> None:
    made = history(Plan(end=S.FAILED), Plan(end=S.CANCELLED, cancel_requested=True))
    made.jobs[1] = replace(made.jobs[1], last_error=ENDED_EARLY.error)
    made.runs = [replace(made.runs[0], state="TIMEOUT"), replace(made.runs[1], state="COMPLETED")]
    assert kinds(provider_books(made)) == []


def test_the_evidence_of_a_wrong_bill_has_all_facts() -> None:
    made = history(Plan(ran_s=30))
    bill_more(made, 4)
    books = provider_books(made)
    (difference,) = books.differences
    for words in ("billed 5 minutes", "ran 1 in Slurm", "Slurm job 101", "1 expected", "2027-01-15 01:00:05"):
        assert words in difference.evidence
    assert difference.tx == "0xsettle1"
    assert books.message == "1 of 1 job differs: job 1 (minutes)."


@pytest.mark.parametrize(("more", "tolerance", "differs"), [(1, 1, False), (2, 1, True), (1, 0, True), (5, 5, False)])
def test_the_tolerance_is_in_minutes(more: int, tolerance: int, differs: bool) -> None:
    made = history(Plan(ran_s=30))
    bill_more(made, more)
    assert bool(provider_books(made, tolerance=tolerance).differences) == differs


def test_a_bill_with_too_few_minutes_is_named() -> None:
    made = history(Plan(ran_s=600))
    bill_more(made, -5)
    assert kinds(provider_books(made)) == [(1, Kind.MINUTES)]


def test_a_bill_without_a_run_is_named() -> None:
    made = history(Plan(), Plan())
    books = provider_books(made, Runs(tuple(made.runs[1:])))
    assert kinds(books) == [(1, Kind.NO_RUN)]


def test_a_run_that_never_started_is_no_run() -> None:
    made = history(Plan())
    never = replace(made.runs[0], started_at=None, state="CANCELLED")
    assert kinds(provider_books(made, Runs((never,)))) == [(1, Kind.NO_RUN)]


def test_without_accounting_a_missing_record_proves_nothing() -> None:
    made = history(Plan())
    books = provider_books(made, Runs((), complete=False, source="records"))
    assert books.clean
    assert "Slurm shows no run" in books.notes[0].evidence
    assert books.sources.endswith("records")


def test_two_runs_of_one_claim_are_named_with_both() -> None:
    made = history(Plan())
    (first,) = made.runs
    again = replace(first, slurm_id=999, started_at=MIDNIGHT + 2 * HOUR, ended_at=MIDNIGHT + 2 * HOUR + 9)
    books = provider_books(made, Runs((again, first)))
    assert kinds(books) == [(1, Kind.RAN_TWICE)]
    assert "Slurm job 101" in books.differences[0].evidence
    assert "Slurm job 999" in books.differences[0].evidence


def test_a_run_after_the_settlement_of_an_earlier_day_is_named() -> None:
    made = history(Plan(submit=MIDNIGHT - 5 * HOUR))
    (first,) = made.runs
    again = replace(first, started_at=MIDNIGHT + HOUR, ended_at=MIDNIGHT + HOUR + 60)
    books = provider_books(made, Runs((again,)))
    assert kinds(books) == [(1, Kind.RAN_TWICE)]


def ended_in_slurm(plan: Plan, ended_at: int) -> History:
    """Return a job that runs on chain and has ended in Slurm."""
    made = history(plan)
    made.runs[0] = replace(made.runs[0], state="COMPLETED", ended_at=ended_at)
    return made


def test_an_end_that_was_never_settled_is_named_after_its_grace() -> None:
    long_ago = ended_in_slurm(Plan(end=S.RUNNING), MIDNIGHT + 2 * HOUR)
    assert kinds(provider_books(long_ago)) == [(1, Kind.NEVER_SETTLED)]
    just_now = ended_in_slurm(Plan(end=S.RUNNING), DAY.until - 60)
    assert provider_books(just_now).clean


def test_a_job_that_is_under_way_is_open_and_no_difference() -> None:
    made = history(Plan(end=S.RUNNING), Plan(end=S.SCHEDULED), Plan(submit=DAY.until - 10, ran_s=600))
    books = provider_books(made)
    assert books.clean
    assert list(books.rows["outcome"]) == ["open"] * 3
    assert books.totals.still_locked == 300 * CREDIT


def test_a_run_of_a_claim_that_was_given_back_is_named() -> None:
    made = history(Plan(end=S.PENDING))
    made.give_back(1)
    assert provider_books(made).clean
    at = made.claims[0].at
    run = Run(1, at, 7, "COMPLETED", at + 5, at + 90)
    assert kinds(provider_books(made, Runs((run,)))) == [(1, Kind.RETURNED_RAN)]
    refused = replace(run, guarded=True)
    assert provider_books(made, Runs((refused,))).clean


def test_a_run_that_the_chain_knows_nothing_of_is_named() -> None:
    run = Run(77, MIDNIGHT, 7, "COMPLETED", MIDNIGHT + 5, MIDNIGHT + 90)
    books = provider_books(history(), Runs((run,)))
    assert kinds(books) == [(77, Kind.NOT_ON_CHAIN)]
    yesterday = replace(run, started_at=MIDNIGHT - HOUR, ended_at=MIDNIGHT - HOUR + 5)
    assert provider_books(history(), Runs((yesterday,))).clean


def test_what_the_provider_may_not_bill_is_a_note() -> None:
    made = history(Plan(end=S.PANICKED, ran_s=600), Plan(end=S.FAILED, fault=True, ran_s=600))
    books = provider_books(made)
    assert books.clean
    assert [one.job_id for one in books.notes] == [1]
    assert "panicked and not billed" in books.notes[0].evidence


def test_a_cancelled_job_costs_its_fee() -> None:
    made = history(Plan(end=S.CANCELLED, cancel_requested=True, ran_s=30))
    books = provider_books(made, tolerance=0)
    assert books.clean
    assert books.rows["billed"][0] == books.rows["expected"][0] == 5


@pytest.mark.parametrize("before_s", [60, 30 * 60, 3 * HOUR])
def test_credits_that_came_back_before_the_end_are_refunds(before_s: int) -> None:
    """A release before the period lowers the amount that the job brings into it."""
    made = history(
        Plan(
            submit=MIDNIGHT - HOUR,
            ran_s=2 * HOUR,
            locked=200 * CREDIT,
            cancel_requested=True,
            released_before_s=before_s,
        )
    )
    books, grid = provider_books(made, tolerance=200), operator_books(made)
    assert (books.differences, books.imbalances, grid.imbalances) == ((), (), ())
    earlier = before_s > HOUR
    assert grid.totals.brought_forward == (160 * CREDIT if earlier else 200 * CREDIT)
    assert grid.totals.refunded == (40 * CREDIT if earlier else 80 * CREDIT)


def test_a_job_that_began_before_the_period_brings_its_deposit() -> None:
    made = history(Plan(submit=MIDNIGHT - HOUR, ran_s=2 * HOUR, locked=200 * CREDIT, top_up=CREDIT))
    totals = operator_books(made).totals
    assert (totals.brought_forward, totals.taken) == (201 * CREDIT, 0)
    assert totals.paid == 120 * CREDIT * 8 // 10


def test_unexplained_credits_are_older_strays_or_an_imbalance() -> None:
    made = history(Plan())
    made.balance += 5
    ledger = made.ledger()
    assert needs_older_strays(ledger)
    assert operator_books(made).imbalances
    explained = replace(ledger, older_strays_wei=5)
    assert reconcile("grid", explained, DAY).clean


def test_a_top_up_through_another_contract_is_a_note() -> None:
    made = history(Plan(end=S.RUNNING))
    made.stray(3 * CREDIT)
    made.jobs[1] = replace(made.jobs[1], locked_wei=103 * CREDIT)
    books = operator_books(made)
    assert books.clean
    assert "another contract" in books.notes[0].evidence


def test_a_missing_payment_is_named_and_unbalances_the_books() -> None:
    made = history(Plan())
    made.transfers = [one for one in made.transfers if one.purpose is not Purpose.PAID]
    books = provider_books(made)
    assert kinds(books) == [(1, Kind.TRANSFERS)]
    assert books.imbalances == ("Settled for providers 1.6 credits, transferred to them 0.",)
    assert not books.clean


def test_no_job_is_no_difference() -> None:
    assert provider_books(history()).message == "No job in the period."
    assert operator_books(history()).message == "No job in the period."
