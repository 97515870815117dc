"""Figures of a period: exact, the same from every side, and each wei, second and wait in one period only."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from deepgrid.billing.entries import Span
from deepgrid.billing.reconcile import reconcile
from deepgrid.billing.usage.capacity import NOTHING, Capacity, OfferChange, Offers
from deepgrid.billing.usage.job_uses import End
from deepgrid.billing.usage.sums import Sums
from deepgrid.billing.usage.usage_figures import Usage, Waits
from deepgrid.lifecycle.ends import ENDS
from deepgrid.lifecycle.job import JobDefinition
from deepgrid.lifecycle.states import JobStatus
from tests.billing.histories import ANOTHER, CREDIT, DAY, ME, MIDNIGHT, Plan
from tests.billing.usage.reports import BEFORE, DAY_S, NODES, OFFERS, history, report_of, usage_of, usage_plans

S = JobStatus
TWO_CPUS = JobDefinition(gpus=1, mem_per_cpu_mb=100, cpus_per_task=2, ntasks=1, definition_hash="")


def total(parts: dict[str, Sums]) -> Sums:
    return sum(parts.values(), start=Sums())


def without_offer(sums: Sums) -> Sums:
    return replace(sums, offered_s=NOTHING)


@settings(max_examples=60, deadline=None)
@given(st.lists(usage_plans, max_size=8), st.sampled_from([None, ME, ANOTHER]))
def test_customers_clusters_and_the_books_have_the_same_sums(some: list[Plan], provider: str | None) -> None:
    made = history(*some)
    found = usage_of(made, DAY, provider)
    assert total(found.clusters) == found.totals
    assert total(found.customers) == without_offer(found.totals)
    assert sum(found.ends.values()) == found.totals.jobs
    books = reconcile("any", made.ledger(), DAY, provider=provider).totals
    assert (found.totals.paid_wei, found.totals.cut_wei) == (books.paid, books.cut)
    assert found.totals.refunded_wei == books.refunded
    assert found.totals.jobs + found.open_jobs == books.jobs
    for field in ("paid_wei", "cut_wei"):
        assert sum(getattr(bar, field) for bar in found.bars) == getattr(found.totals, field)
    for field in ("used_s", "offered_s"):
        assert sum((getattr(bar, field) for bar in found.bars), start=NOTHING) == getattr(found.totals, field)


@settings(max_examples=60, deadline=None)
@given(st.lists(usage_plans, max_size=6))
def test_the_grid_is_the_sum_of_its_providers_and_of_no_cluster(some: list[Plan]) -> None:
    made = history(*some)
    grid, mine, theirs = (usage_of(made, DAY, who) for who in (None, ME, ANOTHER))
    none = grid.clusters.get("", Sums())
    assert mine.totals + theirs.totals + none == grid.totals


@settings(max_examples=60, deadline=None)
@given(st.lists(usage_plans, max_size=6), st.integers(1 - 2 * DAY_S, 2 * DAY_S - 1))
def test_two_periods_side_by_side_have_the_sums_of_both(some: list[Plan], middle: int) -> None:
    """No wei, no second in use and no wait is lost or counted twice at the edge, wherever it is."""
    made = history(*some)
    since, edge, until = MIDNIGHT - 2 * DAY_S, MIDNIGHT + middle, MIDNIGHT + 2 * DAY_S
    first, second, whole = (usage_of(made, span) for span in (Span(since, edge), Span(edge, until), Span(since, until)))
    assert without_offer(first.totals + second.totals) == without_offer(whole.totals)
    assert first.to_claim.count + second.to_claim.count == whole.to_claim.count
    assert first.to_start.count + second.to_start.count == whole.to_start.count
    assert first.ends + second.ends == whole.ends


@settings(max_examples=40, deadline=None)
@given(st.lists(usage_plans, max_size=6), st.sampled_from([None, ME]))
def test_one_reading_of_two_periods_gives_what_two_readings_give(some: list[Plan], provider: str | None) -> None:
    made = history(*some)
    report = report_of(made, provider)
    assert without_times(report.now) == without_times(usage_of(made, DAY, provider))
    assert without_times(report.before) == without_times(usage_of(made, BEFORE, provider))


def without_times(figures: Usage) -> Usage:
    """Return figures without the jobs, whose bills after the period are known only if they are read."""
    return replace(figures, jobs=())


def test_a_job_over_the_edge_is_in_use_in_both_periods_and_paid_in_the_second() -> None:
    made = history(Plan(submit=MIDNIGHT - 605, ran_s=1200, asked=TWO_CPUS, report_after_s=0))
    report = report_of(made)
    began = made.jobs[1].started_at
    assert report.before.totals.used_s.cpus == 2 * (MIDNIGHT - began)
    assert report.before.totals.used_s.cpus + report.now.totals.used_s.cpus == 2 * 1200
    assert (report.before.totals.paid_wei, report.before.totals.jobs, report.before.open_jobs) == (0, 0, 1)
    assert (report.now.totals.cost_wei, report.now.totals.jobs) == (20 * CREDIT, 1)
    assert report.before.to_claim.count == 1 and report.now.to_claim.count == 0


def test_an_empty_period_has_zeros_and_the_whole_offer() -> None:
    found = usage_of(history(), DAY)
    assert found.totals == Sums(offered_s=(NODES + NODES) * DAY_S)
    assert (found.customers, found.ends, found.to_claim) == ({}, {}, Waits(0))
    assert set(found.clusters) == {ME, ANOTHER}
    assert usage_of(history(), DAY, offers=Offers()).clusters == {}


def test_jobs_keep_the_price_of_their_assignment() -> None:
    made = history(Plan(rate=2 * CREDIT, ran_s=60), Plan(rate=5 * CREDIT, ran_s=60))
    found = usage_of(made, DAY, ME)
    assert found.totals.cost_wei == 7 * CREDIT
    assert found.totals.paid_wei + found.totals.cut_wei + found.totals.refunded_wei == 200 * CREDIT


def test_what_came_back_before_the_end_is_refunded_in_its_period() -> None:
    plan = Plan(end=S.CANCELLED, submit=MIDNIGHT - 1800, ran_s=3600, cancel_requested=True, released_before_s=7200)
    made = history(plan)
    report = report_of(made)
    released = sum(one.wei for one in made.transfers if one.purpose == "release")
    assert report.before.totals.refunded_wei == released > 0
    assert report.now.totals.refunded_wei == made.settlements[0].refunded_wei


def test_a_cluster_that_failed_is_named_and_its_time_in_use_counts() -> None:
    made = history(Plan(end=S.FAILED, fault=True, ran_s=600), Plan(end=S.FAILED, ran_s=60), Plan(end=S.PANICKED))
    made.jobs[1] = replace(made.jobs[1], last_error=ENDS["NODE_FAIL"].error)
    made.jobs[2] = replace(made.jobs[2], last_error="words of a stranger")
    found = usage_of(made, DAY)
    assert found.ends == {
        (End.CLUSTER_FAILED, "a node of the cluster failed"): 1,
        (End.FAILED, ""): 1,
        (End.PANICKED, ""): 1,
    }
    failed = next(one for one in found.jobs if one.end is End.CLUSTER_FAILED)
    assert (failed.paid_wei, failed.billed_minutes) == (0, 0)
    assert failed.used_s.cpus >= 600


def test_a_late_settlement_makes_no_time_in_use() -> None:
    """A supervisor that was down settles hours later. The bill says how long the job ran."""
    made = history(Plan(ran_s=120, report_after_s=0, asked=TWO_CPUS))
    made.jobs[1] = replace(made.jobs[1], ended_at=made.jobs[1].ended_at + 36_000)
    assert usage_of(made, DAY).totals.used_s == Capacity(2, 200, 1) * 120


def test_an_offer_counts_from_its_change_on() -> None:
    half = Capacity(cpus=32, mem_mb=128_000, gpus=0)
    changed = Offers(
        (*OFFERS.changes[:1], OfferChange(ME, MIDNIGHT + DAY_S // 4, half), OfferChange(ME, DAY.until, NODES))
    )
    found = usage_of(history(), DAY, ME, changed).totals.offered_s
    assert found == NODES * (DAY_S // 4) + half * (3 * DAY_S // 4)


def test_waits_are_those_that_ended_in_the_period() -> None:
    assert Waits.of([5, None, 1, 4, 2, 3, 9, 8, 7, 6, 10]) == Waits(10, 5, 9, 10)
    assert Waits.of([7]) == Waits(1, 7, 7, 7)
    found = usage_of(history(Plan(), Plan(end=S.PENDING)), DAY)
    assert (found.to_claim, found.to_start.count) == (Waits(1, 2, 2, 2), 1)


def test_given_back_claims_are_counted() -> None:
    made = history(Plan(), Plan())
    made.give_back(1)
    made.give_back(2, ANOTHER)
    assert [usage_of(made, DAY, who).given_back for who in (None, ME, ANOTHER)] == [2, 1, 1]
