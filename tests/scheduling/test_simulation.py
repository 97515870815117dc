"""The simulator: every job ends once, the same seed gives the same results, measures by hand-worked examples."""

from __future__ import annotations

from collections import Counter

import pytest

from deepgrid.billing.formulas import rate_wei_per_minute
from tools.simulation.comparison import POLICIES
from tools.simulation.measures import jain, measure
from tools.simulation.policies import OLDEST, Deepgrid, FirstComeCheapest
from tools.simulation.simulator import Outcome, Simulator
from tools.simulation.testbed import CAPACITY, SITES, START, Site, chain_job
from tools.simulation.workloads import TraceJob, equal_demand, mixed_workload, with_load

MILLI = 10**15


def trace_job(number: int, submitted_s: int = 0, run_s: int = 100, cpus: int = 1, customer: str = "a") -> TraceJob:
    return TraceJob(number, customer, submitted_s, run_s, 2 * run_s, 1, cpus, 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_job_ends_once_and_no_node_is_over_used(policy: str) -> None:
    jobs = with_load(mixed_workload(5, jobs=60), CAPACITY, 2.0)
    simulator = Simulator(jobs, SITES, POLICIES[policy](1))
    outcomes = simulator.run()  # taking more than a node has is an error: NodePool.take
    assert Counter(outcome.job.number for outcome in outcomes) == Counter(job.number for job in jobs)
    assert all(o.job.submitted_s <= o.assigned_s <= o.started_s < o.ended_s for o in outcomes)
    assert all(o.ended_s - o.started_s == max(1, round(o.job.run_s / SITES[o.site].speed)) for o in outcomes)
    for cluster in simulator.clusters:
        hardware = cluster.provider.hardware
        assert tuple(cluster.pool.cpus) == hardware.cpus_per_node and tuple(cluster.pool.gpus) == hardware.gpus_per_node


def test_the_cpus_in_use_never_exceed_those_of_a_cluster() -> None:
    outcomes = Simulator(with_load(mixed_workload(6, jobs=150), CAPACITY, 2.0), SITES, FirstComeCheapest()).run()
    for index, site in enumerate(SITES):
        here = [outcome for outcome in outcomes if outcome.site == index]
        for moment in {outcome.started_s for outcome in here}:
            used = sum(o.job.cpus for o in here if o.started_s <= moment < o.ended_s)
            assert used <= site.nodes * site.cpus


@pytest.mark.parametrize("policy", ["random", "deepgrid"])
def test_the_same_seed_gives_the_same_outcomes(policy: str) -> None:
    first, second = (
        Simulator(with_load(mixed_workload(7, jobs=40), CAPACITY, 1.3), SITES, POLICIES[policy](3)).run()
        for _ in range(2)
    )
    assert first == second
    if policy == "random":
        other = Simulator(with_load(mixed_workload(7, jobs=40), CAPACITY, 1.3), SITES, POLICIES[policy](4)).run()
        assert other != first


def test_a_job_too_large_for_all_clusters_is_reported_not_lost() -> None:
    simulator = Simulator([trace_job(1, cpus=1_000), trace_job(2)], SITES, FirstComeCheapest())
    assert [outcome.job.number for outcome in simulator.run()] == [2]
    assert [job.number for job in simulator.misfits] == [1]


def test_a_small_job_behind_many_wide_ones_of_its_customer_is_considered() -> None:
    sites = [Site("one", 1, 4, 4, 0, 10, 0, 1.0)]
    wide = [trace_job(number, number, cpus=4) for number in range(2, 2 * OLDEST)]
    small = trace_job(2 * OLDEST, 100, run_s=60)
    outcomes = Simulator([trace_job(1, run_s=10_000, cpus=3), *wide, small], sites, Deepgrid()).run()
    starts = {outcome.job.number: outcome.started_s for outcome in outcomes}
    assert starts[small.number] < 200
    assert all(starts[job.number] >= 10_000 for job in wide)


def test_customers_lock_the_credits_for_the_requested_time_at_the_dearest_cluster() -> None:
    job = chain_job(trace_job(1, submitted_s=7, run_s=150, cpus=2), [site.provider(n) for n, site in enumerate(SITES)])
    assert job is not None
    assert job.locked_wei == 5 * 2 * 14 * MILLI  # 300 s requested, 2 CPUs at larch
    assert job.submitted_at == START + 7
    assert rate_wei_per_minute(job.definition, SITES[0].provider(1).prices) == 2 * 7 * MILLI


def test_measures_of_two_jobs_by_hand() -> None:
    """A cluster of 2 CPUs of speed 2: work of 400 CPU seconds in the 100 s until the last submission."""
    sites = [Site("one", 1, 2, 4, 0, 10, 0, 2.0), Site("idle", 1, 2, 4, 0, 10, 0, 1.0)]
    first = Outcome(trace_job(1, 0, 200, 2, "a"), 0, 0, 0, 100, 10, 40 * MILLI)
    second = Outcome(trace_job(2, 100, 8, 1, "b"), 0, 100, 120, 124, 100, 10 * MILLI)
    found = measure([first, second], sites)
    assert (found.jobs, found.mean_wait_s, found.median_wait_s) == (2, 10, 10)
    assert found.slowdown == pytest.approx((1 + (20 + 4) / 10) / 2)
    assert found.utilisation == pytest.approx(400 / (100 * 6))
    assert found.jain_customers == pytest.approx(0.5)  # a got everything that it requested, b nothing yet
    assert found.jain_providers == pytest.approx(0.5)
    assert found.millicredits_per_cpu_hour == pytest.approx(50 / (408 / 3600))
    assert found.start_error_s == 15


def test_jains_index_by_hand() -> None:
    assert jain([3, 3, 3]) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert jain([1, 2]) == pytest.approx(9 / 10)
    assert jain([0, 0]) == 1


def test_customers_of_equal_demand_submit_the_same_jobs() -> None:
    demands: dict[str, Counter[tuple[int, int]]] = {}
    for job in equal_demand(2, jobs=160):
        demands.setdefault(job.customer, Counter())[job.cpus, job.run_s] += 1
    assert len(demands) == 8
    assert all(demand == demands["customer-01"] for demand in demands.values())


@pytest.mark.parametrize("load", [0.9, 1.3])
def test_arrivals_are_stretched_to_the_load(load: float) -> None:
    jobs = with_load(mixed_workload(1, jobs=300), 500.0, load)
    span = max(job.submitted_s for job in jobs)
    assert sum(job.work for job in jobs) / (500 * span) == pytest.approx(load, rel=0.001)
