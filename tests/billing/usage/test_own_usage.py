"""A customer's usage equals the books, to the wei. `dps`, the Python client and the web app share these figures."""

from __future__ import annotations

import io
import random
from dataclasses import replace

import pandas as pd
import pytest

from deepgrid.billing.credits import format_credits
from deepgrid.billing.entries import Span
from deepgrid.billing.usage.capacity import Offers
from deepgrid.billing.usage.own_usage import as_rows, checked_by, own_usage, usage_as_json
from deepgrid.billing.usage.usage_figures import usage
from deepgrid.client.bills.job_usage import usage_csv, usage_frame, usage_parquet
from deepgrid.errors import InputError
from deepgrid.lifecycle.states import JobStatus
from tests.billing.books import history, operator_books
from tests.billing.histories import ANOTHER, CREDIT, CUSTOMER, ME, MIDNIGHT, History, Plan

MONTH = Span(MIDNIGHT, MIDNIGHT + 30 * 86400)
NAMES = {ME: "alpha", ANOTHER: "beta"}
ENDS = (JobStatus.FINISHED, JobStatus.FAILED, JobStatus.OUT_OF_CREDITS, JobStatus.PANICKED, JobStatus.CANCELLED)


def seeded_month(count: int = 300) -> History:
    """Return a month of a customer's jobs at two clusters, with top-ups, odd amounts and open jobs."""
    chance = random.Random(43)
    plans = [
        Plan(
            end=(end := chance.choice((*ENDS, JobStatus.RUNNING, JobStatus.PENDING))),
            submit=MIDNIGHT + chance.randrange(29 * 86400),
            locked=chance.randrange(10 * CREDIT, 500 * CREDIT),
            rate=chance.randrange(1, 3 * CREDIT),
            top_up=chance.choice((0, 0, chance.randrange(CREDIT))),
            ran_s=chance.randrange(20_000),
            cancel_requested=end is JobStatus.CANCELLED,
            provider=chance.choice((ME, ANOTHER)),
        )
        for _ in range(count)
    ]
    return history(*plans, span=MONTH)


def test_a_seeded_month_equals_the_books() -> None:
    made = seeded_month()
    found = own_usage(CUSTOMER, MONTH, made.jobs.values(), NAMES)
    books, ledger = operator_books(made).totals, made.ledger()
    assert (found.totals.paid_wei, found.totals.cut_wei, found.totals.refunded_wei) == (
        books.paid, books.cut, books.refunded,
    )  # fmt: skip
    assert found.locked_wei == books.still_locked
    reported = usage(ledger, MONTH, Offers()).customers[CUSTOMER]
    assert replace(found.totals, used_s=reported.used_s) == reported
    for by in ("month", "cluster", "name", "job"):
        rows = as_rows(found, checked_by(by))
        assert sum(int(row["cost_wei"]) for row in rows) == books.paid + books.cut
        assert usage_as_json(found, checked_by(by))["totals"] == usage_as_json(found, "month")["totals"]
        frame = usage_frame(found, checked_by(by))
        assert (frame.cost_wei.sum(), frame.refunded_wei.sum()) == (books.paid + books.cut, books.refunded)
    clusters = {row["cluster"]: row["cost_wei"] for row in as_rows(found, "cluster")}
    for address, name in NAMES.items():
        paid = [one.paid_wei + one.cut_wei for one in ledger.settlements if one.provider == address]
        assert clusters[name] == sum(paid)


def test_a_job_counts_where_it_was_settled() -> None:
    made = history(Plan(submit=MIDNIGHT + 86400 - 100, ran_s=300), span=MONTH)
    jobs = made.jobs.values()
    first, second = (Span(MIDNIGHT + day * 86400, MIDNIGHT + (day + 1) * 86400) for day in (0, 1))
    assert (len(own_usage(CUSTOMER, first, jobs, {}).jobs), len(own_usage(CUSTOMER, second, jobs, {}).jobs)) == (0, 1)


def test_clusters_with_one_name_are_told_apart() -> None:
    made = history(Plan(), Plan(provider=ANOTHER), span=MONTH)
    found = own_usage(CUSTOMER, MONTH, made.jobs.values(), {ME: "same", ANOTHER: "same"})
    assert set(found.groups("cluster")) == {f"same ({ME})", f"same ({ANOTHER})"}
    assert set(own_usage(CUSTOMER, MONTH, made.jobs.values(), {}).groups("cluster")) == {ME, ANOTHER}


def test_files_hold_the_same_amounts() -> None:
    made = seeded_month(20)
    found = own_usage(CUSTOMER, MONTH, made.jobs.values(), NAMES)
    frame = usage_frame(found, "cluster")
    kept = pd.read_parquet(io.BytesIO(usage_parquet(frame)))
    assert [int(text) for text in kept.cost_wei] == list(frame.cost_wei)
    assert all(format_credits(wei) in usage_csv(frame) for wei in frame.cost_wei)
    empty = own_usage(CUSTOMER, Span(0, 1), made.jobs.values(), NAMES)
    assert len(usage_frame(empty, "month")) == 0
    assert usage_parquet(usage_frame(empty, "month"))


def test_other_groups_are_refused() -> None:
    with pytest.raises(InputError, match="'year' is no kind of groups"):
        checked_by("year")
