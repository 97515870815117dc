"""Slices of time: the jobs that get them, their order, and the limit of the customer's funds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.scheduling.top_ups import Funds, Slice, Unpaid, near_end, plan, remaining_minutes
from tests.lifecycle.support import JOB as CLAIMED

CREDIT = 10**18
NOW = 1_000_000
S = JobStatus
JOB = replace(
    CLAIMED, status=S.RUNNING, customer="0xc", granted_minutes=60, started_at=NOW - 55 * 60, delegate_spending=True,
    rate_wei_per_minute=CREDIT,
)  # fmt: skip


@pytest.mark.parametrize(
    ("job", "due"),
    [
        (JOB, True),
        (replace(JOB, started_at=NOW - 50 * 60), True),  # exactly ten minutes are left
        (replace(JOB, started_at=NOW - 50 * 60 + 1), False),  # a minute begun is not used yet
        (replace(JOB, started_at=NOW - 60 * 60 - 59), True),  # its last minute is not used up
        (replace(JOB, started_at=NOW - 61 * 60), False),  # over its time, and not reported yet
        (replace(JOB, delegate_spending=False), False),
        (replace(JOB, status=S.OUT_OF_CREDITS), False),
        (replace(JOB, status=S.META_SCHEDULED, granted_minutes=1, started_at=0), False),
        (replace(JOB, status=S.SCHEDULED, started_at=0), False),
        (replace(JOB, status=S.SCHEDULED, started_at=0, granted_minutes=1), True),
    ],
)
def test_jobs_near_their_end(job: Job, due: bool) -> None:
    assert near_end([job], slice_minutes=30, ahead_minutes=10, now=NOW) == ([job] if due else [])


def test_the_look_ahead_is_capped_at_one_slice() -> None:
    long_ahead = replace(JOB, started_at=NOW - 58 * 60)
    assert remaining_minutes(long_ahead, NOW) == 2
    assert near_end([long_ahead], slice_minutes=1, ahead_minutes=10, now=NOW) == []


def test_the_look_ahead_is_capped_at_the_contracts_ten_minutes() -> None:
    early = replace(JOB, started_at=NOW - 49 * 60)
    assert near_end([early], slice_minutes=30, ahead_minutes=20, now=NOW) == []


def test_the_funds_are_shared_and_jobs_that_end_first_are_served_first() -> None:
    jobs = [replace(JOB, id=number, started_at=NOW - used * 60) for number, used in ((1, 55), (2, 58), (3, 52))]
    due = near_end(jobs, 30, 10, NOW)
    planned = plan(due, {"0xc": Funds(60 * CREDIT, 1000 * CREDIT)}, {1: CREDIT**2, 2: CREDIT**2, 3: CREDIT**2}, 30)
    assert [(type(one).__name__, one.job.id) for one in planned] == [("Slice", 2), ("Slice", 1), ("Unpaid", 3)]


@pytest.mark.parametrize(
    ("funds", "reason"),
    [
        (
            Funds(30 * CREDIT - 1, 1000 * CREDIT),
            "the allowance is used up: the job ends at its limit of 60 min;"
            " to continue it, raise it with `dps allowance set` (30 min cost 30)",
        ),
        (
            Funds(1000 * CREDIT, 30 * CREDIT - 1),
            "the credits are used up: the job ends at its limit of 60 min;"
            " to continue it, get more (30 min cost 30)",
        ),
    ],
)  # fmt: skip
def test_a_customer_who_cannot_pay_gets_the_reason(funds: Funds, reason: str) -> None:
    assert plan([JOB], {"0xc": funds}, {JOB.id: CREDIT**2}, 30) == [Unpaid(JOB, reason)]


def test_a_slice_is_at_most_what_the_customer_allows_for_the_job() -> None:
    rich = {"0xc": Funds(1000 * CREDIT, 1000 * CREDIT)}
    assert plan([JOB], rich, {JOB.id: 30 * CREDIT}, 30) == [Slice(JOB, 30, 30 * CREDIT)]
    assert plan([JOB], rich, {JOB.id: 7 * CREDIT + 1}, 30) == [Slice(JOB, 7, 7 * CREDIT + 1)]
    assert plan([JOB], rich, {JOB.id: CREDIT}, 30) == [Slice(JOB, 1, CREDIT)]
    (refused,) = plan([JOB], rich, {JOB.id: CREDIT - 1}, 30)
    assert isinstance(refused, Unpaid)
    assert f"`dps job auto-top-up {JOB.id} --limit CREDITS`" in refused.reason


def test_a_small_job_may_still_be_paid_where_a_large_one_is_not() -> None:
    large, small = replace(JOB, id=1, rate_wei_per_minute=9 * CREDIT), replace(JOB, id=2)
    planned = plan([large, small], {"0xc": Funds(40 * CREDIT, 40 * CREDIT)}, {1: CREDIT**2, 2: CREDIT**2}, 30)
    assert [type(one) for one in planned] == [Unpaid, Slice]


running_jobs = st.lists(
    st.builds(
        lambda customer, rate, used, granted: replace(
            JOB, customer=customer, rate_wei_per_minute=rate, started_at=NOW - used, granted_minutes=granted
        ),
        st.sampled_from(["0xa", "0xb", "0xc"]), st.integers(0, 100), st.integers(0, 5000), st.integers(1, 90),
    ),
    max_size=12,
).map(lambda jobs: [replace(job, id=number) for number, job in enumerate(jobs)])  # fmt: skip
funds = st.fixed_dictionaries(
    {who: st.builds(Funds, st.integers(0, 5000), st.integers(0, 5000)) for who in ("0xa", "0xb", "0xc")}
)


@given(running_jobs, funds, st.integers(1, 60), st.integers(0, 60))
def test_a_plan_never_spends_more_than_the_funds(
    jobs: list[Job], funds: dict[str, Funds], slice_minutes: int, ahead: int
) -> None:
    due = near_end(jobs, slice_minutes, ahead, NOW)
    allowed = {job.id: job.id * 700 for job in jobs}
    planned = plan(due, funds, allowed, slice_minutes)
    spent: Counter[str] = Counter()
    for one in planned:
        if isinstance(one, Slice):
            spent[one.job.customer] += one.cost_wei
            assert one.cost_wei == min(slice_minutes * one.job.rate_wei_per_minute, allowed[one.job.id])
            assert one.cost_wei >= one.job.rate_wei_per_minute
            assert remaining_minutes(one.job, NOW) <= slice_minutes  # or the contract refuses it
    for who, own in funds.items():
        assert spent[who] <= min(own.allowance_wei, own.balance_wei)
    assert [one.job.id for one in planned] == [job.id for job in due]  # each once
    for one in planned:
        if isinstance(one, Unpaid):
            own = funds[one.job.customer]
            left = min(own.allowance_wei, own.balance_wei) - spent[one.job.customer]
            cost, most = slice_minutes * one.job.rate_wei_per_minute, allowed[one.job.id]
            # every job that can be paid gets a slice
            assert most < one.job.rate_wei_per_minute or min(cost, most) > left
