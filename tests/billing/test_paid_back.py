"""The books name customers with repeated refunds, and jobs without a claim. Neither is a difference."""

from __future__ import annotations

from dataclasses import replace

from deepgrid.billing.entries import ForeignJob, Runs
from deepgrid.billing.report import page
from deepgrid.lifecycle.states import JobStatus
from tests.billing.books import history, operator_books, provider_books
from tests.billing.histories import ANOTHER, CUSTOMER, MIDNIGHT, History, Plan

FAILED = Plan(end=JobStatus.FAILED, fault=True, ran_s=600)


def faults(count: int, *others: Plan) -> History:
    return history(*[FAILED] * count, *others)


def test_three_faults_of_a_customer_are_named_and_two_are_not() -> None:
    assert provider_books(faults(2, Plan())).paid_back == ()
    (found,) = provider_books(faults(3, Plan())).paid_back
    assert (found.customer, found.job_ids, found.minutes) == (CUSTOMER, (1, 2, 3), 30)


def test_the_operators_books_name_them_without_slurm() -> None:
    (found,) = operator_books(faults(3)).paid_back
    assert found.job_ids == (1, 2, 3)


def test_each_customer_counts_for_itself_and_other_clusters_faults_do_not() -> None:
    made = faults(4, replace(FAILED, provider=ANOTHER))
    made.jobs[4] = replace(made.jobs[4], customer="0xOther")
    made.settlements[3] = replace(made.settlements[3], customer="0xOther")
    (found,) = provider_books(made).paid_back
    assert (found.customer, found.job_ids) == (CUSTOMER, (1, 2, 3))


def test_jobs_that_were_billed_or_never_ran_are_not_among_them() -> None:
    own_fault = Plan(end=JobStatus.FAILED)
    cancelled = Plan(end=JobStatus.CANCELLED, cancel_requested=True)
    assert provider_books(history(*[own_fault] * 3, *[cancelled] * 3, *[Plan()] * 3)).paid_back == ()


def test_the_page_names_them_and_the_books_are_clean() -> None:
    books = provider_books(faults(3))
    assert books.clean
    assert f"## Paid back again and again\n\n* **{CUSTOMER}**: 3 jobs that ran 30 minutes in Slurm: 1, 2, 3" in page(
        books, b""
    )
    assert "again" not in page(provider_books(faults(1)), b"")


def test_jobs_without_a_claim_are_listed_in_plain_text() -> None:
    foreign = (
        ForeignJob(7, "dg-alice", MIDNIGHT, MIDNIGHT + 60, 55),
        ForeignJob(8, "a`\n# The books agree\x1b[2J", None, None),
    )
    made = history(Plan())
    books = provider_books(made, Runs(made.slurm().runs, foreign=foreign))
    assert books.clean
    text = page(books, b"")
    assert "* **Slurm job 7** of `dg-alice`: " in text
    assert "55 s of CPU time" in text
    assert "* **Slurm job 8** of `a??# The books agree?[2J`: not started to now" in text
    assert "without a claim" not in page(provider_books(made), b"")
