"""Rounds of the scheduler: the choice of a cluster, jobs that are held back, and reasons for waiting jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deepgrid.lifecycle.job import Affinity, Label, Prefer, Wishes
from deepgrid.lifecycle.states import JobStatus
from deepgrid.scheduling.explain import explain
from deepgrid.scheduling.market import (
    Assignment,
    ClusterState,
    Market,
    Reliability,
    Resources,
    Round,
    SchedulerSettings,
    Usage,
    Waiting,
    Weights,
)  # fmt: skip
from deepgrid.scheduling.rounds.reasons import line
from deepgrid.scheduling.rounds.scheduler import Scheduler
from tests.scheduling.markets import CREDIT, NOW, hot, pending, small


def decide(*jobs: object, clusters: list[ClusterState], **more: object) -> Round:
    settings = more.pop("settings", None)
    return Scheduler(settings).round(jobs, Market(clusters, NOW), **more)  # type: ignore[arg-type]


def chosen(result: Round) -> dict[int, str]:
    return {one.job_id: one.provider for one in result.assignments}


def only_waiting(result: Round) -> Waiting:
    assert result.assignments == []
    [one] = result.waiting
    return one


def test_the_cheaper_of_two_idle_clusters_gets_the_job_and_says_so() -> None:
    result = decide(pending(), clusters=[small("alpha", price=2 * CREDIT), small("beta", price=CREDIT // 2)])
    [one] = result.assignments
    words = "beta fits at 0.5 credits per minute, the best of 2 clusters where it can start soon"
    assert one == Assignment(1, "0xbeta", words, NOW)


def test_a_price_that_differs_by_one_wei_counts() -> None:
    price_only = SchedulerSettings(Weights(start=0, speed=0, reliability=0, spread=0))
    dear, cheap = small("alpha", price=10**30 + 1), small("beta", price=10**30)
    job = pending(locked_wei=10**32)
    assert chosen(decide(job, clusters=[dear, cheap], settings=price_only)) == {1: "0xbeta"}


@pytest.mark.parametrize(("missing", "fits"), [(0, True), (1, False)])
def test_credits_for_the_wanted_minutes_are_counted_to_the_wei(missing: int, fits: bool) -> None:
    price = 10**18 + 7
    job = pending(locked_wei=30 * price - missing, wishes=Wishes(min_minutes=30))
    result = decide(job, clusters=[small("alpha", price=price)])
    assert bool(result.assignments) is fits
    if not fits:
        assert only_waiting(result).reason == "no cluster can take it: 1 cluster is too expensive"


def test_the_ceiling_binds_to_the_wei() -> None:
    wishes = Wishes(max_rate_wei=CREDIT)
    assert decide(pending(wishes=wishes), clusters=[small("alpha", price=CREDIT)]).assignments
    waiting = only_waiting(decide(pending(wishes=wishes), clusters=[small("alpha", price=CREDIT + 1)]))
    assert "1 cluster is above the ceiling of 1 credits per minute" in waiting.reason


def test_reasons_are_grouped_and_counted() -> None:
    clusters = [
        *(small(f"cpu{n}") for n in range(5)),
        *(small(f"eu{n}", gpus=8, labels=(Label("zone", "eu"),)) for n in range(2)),
        small("dear", gpus=8, price=10**30, labels=(Label("zone", "us"),)),
    ]
    job = pending(gpus=8, affinity=(Affinity("zone", "==", "us"),))
    assert only_waiting(decide(job, clusters=clusters)).reason == (
        "no cluster can take it: 5 clusters lack 8 GPUs, 2 have no label zone==us, 1 is too expensive"
    )


def test_a_cluster_that_is_banned_or_not_approved_gets_nothing() -> None:
    one = small("alpha")
    banned = replace(one, provider=replace(one.provider, banned=True))
    unapproved = replace(one, provider=replace(one.provider, approved=False))
    reason = only_waiting(decide(pending(), clusters=[banned, unapproved])).reason
    assert reason == "no cluster is approved and open for jobs"


def test_a_provider_that_gave_the_job_back_is_not_asked_again() -> None:
    clusters = [small("alpha"), small("beta", price=5 * CREDIT)]
    result = decide(pending(), clusters=clusters, refusals={1: {"0xalpha": "node down"}})
    assert chosen(result) == {1: "0xbeta"}
    result = decide(pending(), clusters=clusters[:1], refusals={1: {"0xalpha": "node down"}})
    assert only_waiting(result).reason == "no cluster can take it: 1 cluster gave it back lately"


def test_tries_are_bounded() -> None:
    refusals = {1: {"0xalpha": "", "0xgone": ""}}
    settings = SchedulerSettings(max_tries=2)
    result = decide(pending(), clusters=[small("alpha"), small("beta")], refusals=refusals, settings=settings)
    assert only_waiting(result).reason == "2 clusters gave it back; it is not tried again"


def test_a_job_is_held_back_until_its_start_is_near() -> None:
    later = [small("alpha", busy=(hot(8, 10),))]
    waiting = only_waiting(decide(pending(), clusters=later))
    assert (waiting.estimated_start, waiting.cluster) == (NOW + 600, "alpha")
    assert waiting.reason == "1 cluster is full"
    soon = [small("alpha", busy=(hot(8, 1),))]
    [one] = decide(pending(), clusters=soon).assignments
    assert one.estimated_start == NOW + 60


def test_a_waiting_job_knows_its_place() -> None:
    clusters = [small("alpha", busy=(hot(8, 10),))]
    jobs = [pending(1, customer="0xa"), pending(2, customer="0xb", age_s=1), pending(3, customer="0xb")]
    usage = Usage(present={"0xa": Resources(3.28, 0, 0)}, past={"0xa": Resources(3.28, 0, 0)})
    result = decide(*jobs, clusters=clusters, usage=usage)
    mine = next(one for one in result.waiting if one.job_id == 1)
    assert (mine.position, mine.ahead_of_others) == (3, 2)
    assert line(mine).startswith("3rd in line, 2 jobs of others first; your share of CPUs is 41 %; estimated start ")
    assert result.shares == {"0xa": pytest.approx(0.41), "0xb": 0.0}


def test_ten_thousand_jobs_of_one_do_not_delay_the_first_job_of_another() -> None:
    flood = [pending(n, customer="0xflood", age_s=7200) for n in range(2, 10_002)]
    result = decide(pending(1, customer="0xlate"), *flood, clusters=[small("alpha")])
    assert 1 in chosen(result)
    assert len(result.assignments) == 8


def test_jobs_that_nobody_can_run_do_not_take_a_turn() -> None:
    impossible = [pending(n, customer="0xa", cpus=64, age_s=9) for n in range(2, 50)]
    other = [pending(n, customer="0xb", age_s=9) for n in range(50, 60)]
    assert 1 in chosen(decide(pending(1, customer="0xa"), *impossible, *other, clusters=[small("alpha")]))


def test_a_large_job_reserves_its_start_and_short_jobs_pass_it() -> None:
    clusters = [small("alpha", nodes=1, cpus=8, busy=(hot(4, 100),))]
    large = pending(1, cpus=8, age_s=86_400)
    short, long = (
        pending(2, customer="0xd", locked_wei=90 * CREDIT),
        pending(3, customer="0xe", locked_wei=200 * CREDIT),
    )
    result = decide(large, short, long, clusters=clusters)
    assert chosen(result) == {2: "0xalpha"}
    reasons = {one.job_id: one.reason for one in result.waiting}
    assert reasons == {1: "1 cluster is full", 3: "1 cluster is kept for jobs before it"}


def test_equal_clusters_get_equal_shares() -> None:
    clusters = [small(f"c{n}", nodes=100, cpus=64, mem=10**6) for n in range(4)]
    settings = SchedulerSettings(Weights(spread=0))
    result = decide(*(pending(n) for n in range(4000)), clusters=clusters, settings=settings)
    counts = [sum(one.provider == state.provider.address for one in result.assignments) for state in clusters]
    assert sum(counts) == 4000
    assert max(counts) < 1.2 * min(counts)


def test_a_provider_that_fails_often_gets_a_job_last() -> None:
    bad = ClusterState(small("alpha").provider, record=Reliability(refused=20))
    assert chosen(decide(pending(), clusters=[bad, small("beta", price=CREDIT + CREDIT // 10)])) == {1: "0xbeta"}


@pytest.mark.parametrize(("prefer", "provider"), [(Prefer.PRICE, "0xslow"), (Prefer.SPEED, "0xfast")])
def test_a_customer_chooses_what_counts_most(prefer: Prefer, provider: str) -> None:
    slow = ClusterState(small("slow").provider, speed={"serial": 1.0})
    fast = ClusterState(small("fast", price=CREDIT + CREDIT // 2).provider, speed={"serial": 1.9})
    assert chosen(decide(pending(wishes=Wishes(prefer=prefer)), clusters=[slow, fast])) == {1: provider}


def test_a_job_that_prefers_the_price_waits_for_the_cheaper_cluster() -> None:
    clusters = [small("cheap", busy=(hot(8, 10),)), small("dear", price=3 * CREDIT)]
    assert chosen(decide(pending(), clusters=clusters)) == {1: "0xdear"}
    waiting = only_waiting(decide(pending(wishes=Wishes(prefer=Prefer.PRICE)), clusters=clusters))
    assert waiting.cluster == "cheap"


def test_a_queued_job_counts_before_a_new_one() -> None:
    queued = (hot(8, 5), hot(8, 5, JobStatus.META_SCHEDULED))
    assert only_waiting(decide(pending(), clusters=[small("alpha", busy=queued)])).estimated_start == NOW + 600


def test_a_scheduler_that_was_used_before_decides_like_a_new_one() -> None:
    clusters = [small("alpha"), small("beta", price=2 * CREDIT)]
    used = Scheduler()
    used.round([pending(n) for n in range(5)], Market(clusters, NOW))
    changed = [
        small("alpha", price=3 * CREDIT),
        small("beta", price=2 * CREDIT),
        small("gamma", labels=(Label("a", "b"),)),
    ]
    jobs = [pending(n, uses=(Label("a", "b"),) if n % 2 else ()) for n in range(9)]
    assert used.round(jobs, Market(changed, NOW)) == Scheduler().round(jobs, Market(changed, NOW))


def test_the_full_list_has_a_row_per_cluster() -> None:
    clusters = [small("full", busy=(hot(8, 10),)), small("gpuless", nodes=1), small("dear", price=10**30)]
    rows = explain(pending(cpus=4, ntasks=2), Market(clusters, NOW))
    assert [(row.cluster, row.obstacle.split(",")[0], row.minutes, row.estimated_start) for row in rows] == [
        ("full", "", 100, NOW + 600),
        ("dear", "one minute costs 8000000000000 credits", 0, 0),
        ("gpuless", "asks for 8 CPUs", 100, 0),
    ]
