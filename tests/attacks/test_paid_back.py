"""A customer tries to compute for free by bringing its nodes down at the end of each job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.billing.report import page
from deepgrid.billing.rules.refunds import OFTEN
from deepgrid.lifecycle.states import JobStatus
from tests.billing.books import history, operator_books, provider_books
from tests.billing.histories import CUSTOMER, Plan

KILLED = Plan(end=JobStatus.FAILED, fault=True, ran_s=3599)


@pytest.mark.attack(
    "kills its node just before its end, repeatedly",
    attacker="a customer", gain="a full refund for each, until the provider refuses its jobs",
    defence="the books name the customer; the provider block lists customers whose jobs are given back unstarted",
)  # fmt: skip
@pytest.mark.parametrize("end", [JobStatus.FAILED, JobStatus.PANICKED])
def test_the_books_name_a_customer_with_repeated_refunds(end: JobStatus) -> None:
    made = history(*[replace(KILLED, end=end)] * OFTEN, *[Plan()] * 5)
    for books in (provider_books(made), operator_books(made)):
        assert [(one.customer, one.job_ids) for one in books.paid_back] == [(CUSTOMER, (1, 2, 3))]
        assert CUSTOMER in page(books, b"")


@pytest.mark.attack(
    "mixes jobs that kill their node with many honest ones",
    attacker="a customer", gain="a full refund for each, until the provider refuses its jobs",
    defence="the books count refunds, not their share of all jobs",
)  # fmt: skip
def test_honest_jobs_do_not_hide_the_refunds() -> None:
    made = history(*[Plan()] * 40, *[KILLED] * OFTEN)
    assert [one.job_ids for one in provider_books(made).paid_back] == [(41, 42, 43)]
