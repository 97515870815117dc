"""Invariants of every round: assignments fit and can be paid, more never gives less, equal input gives equal output."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from deepgrid.billing.formulas import affordable_minutes, rate_wei_per_minute
from deepgrid.lifecycle.job import Affinity, Hardware, Job, JobDefinition, Label, Prefer, Prices, Provider, Wishes
from deepgrid.lifecycle.states import JobStatus
from deepgrid.scheduling.fit import unmet
from deepgrid.scheduling.market import ClusterState, HotJob, Market, Resources, Round, SchedulerSettings
from deepgrid.scheduling.rounds.scheduler import Scheduler
from deepgrid.scheduling.speed import measured_speeds
from tests.scheduling.markets import CREDIT, NOW, pending

Made = TypeVar("Made")
NOT_HELD_BACK = SchedulerSettings(assign_ahead_s=math.inf)
TEXTS = st.sampled_from(("", "1", "01", "1e0", "NaN", "-1", "amd64", "5.0", "inf", "\u202e x", "1" * 40))
KEYS = st.sampled_from(("a", "b", "name", "compute.gflops", "compute.benchmark", "network.p2p.bw.mbps"))
LABELS = st.lists(st.builds(Label, KEYS, TEXTS), max_size=4).map(tuple)
OPS = st.sampled_from(("<", "<=", "==", "=", ">=", ">", "!=", "in", ":in:", "", "~"))
CONDITIONS = st.lists(st.builds(Affinity, KEYS, OPS, TEXTS), max_size=2).map(tuple)
AMOUNTS = st.integers(0, 3 * CREDIT) | st.sampled_from((0, 1, CREDIT, CREDIT + 1, 2**250))
NODES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 12)), max_size=3)


@st.composite
def states(draw: st.DrawFn, number: int, *, idle: bool = False) -> ClusterState:
    """Draw a small cluster with any prices and labels, perhaps with hot jobs."""
    nodes = draw(NODES)
    gpus, cpus, mem = zip(*nodes, strict=True) if nodes else ((), (), ())
    prices = Prices(draw(AMOUNTS), draw(AMOUNTS), draw(AMOUNTS))
    one = Provider(
        f"0x{number}", Hardware(gpus, cpus, mem), prices, draw(LABELS), draw(st.booleans()) or idle, banned=False
    )
    statuses = st.sampled_from((JobStatus.RUNNING, JobStatus.SCHEDULED, JobStatus.META_SCHEDULED))
    hot = st.builds(
        HotJob, st.just(0), st.integers(1, 6).map(lambda cpus: Resources(cpus, cpus, 0)), st.integers(-1, 5), statuses
    )
    return ClusterState(one, () if idle else draw(st.lists(hot, max_size=2)), speed=measured_speeds(one))


@st.composite
def wanted(draw: st.DrawFn, number: int) -> Job:
    """Draw a small job with any credits, conditions and wishes, sometimes with absurd figures."""
    return pending(
        number, customer=draw(st.sampled_from(("0xa", "0xb"))), ntasks=draw(st.integers(1, 4) | st.just(2**63)),
        cpus=draw(st.integers(1, 4) | st.just(0)), mem_per_cpu_mb=draw(st.integers(0, 4) | st.just(2**64 - 1)),
        gpus=draw(st.integers(0, 4)), affinity=draw(CONDITIONS), locked_wei=draw(AMOUNTS),
        age_s=draw(st.integers(0, 99)),
        wishes=Wishes(
            draw(st.sampled_from((0, 0, 1, CREDIT))), draw(st.sampled_from((0, 1, 2, 10**9))),
            prefer=draw(st.sampled_from(Prefer)),
        ),
    )  # fmt: skip


def several(one: Callable[[int], st.SearchStrategy[Made]], most: int) -> st.SearchStrategy[list[Made]]:
    """Draw up to this many values, with different numbers."""
    return st.integers(0, most).flatmap(lambda count: st.tuples(*map(one, range(count)))).map(list)


ADDRESSES = st.sampled_from(("0x0", "0x1", "0x2", "0xgone"))
REFUSALS = st.dictionaries(st.integers(0, 3), st.dictionaries(ADDRESSES, st.just("node down")), max_size=2)


def decide(
    jobs: list[Job], clusters: list[ClusterState], how: SchedulerSettings | None = None,
    refusals: dict[int, dict[str, str]] | None = None,
) -> Round:  # fmt: skip
    return Scheduler(how).round(jobs, Market(clusters, NOW), refusals)


def assigned(result: Round) -> dict[int, str]:
    return {one.job_id: one.provider for one in result.assignments}


def packs(job: JobDefinition, hardware: Hardware) -> bool:
    """Return whether the tasks and GPUs can be put on the nodes, by trying all ways. Independent of `fit`."""
    nodes = list(zip(hardware.cpus_per_node, hardware.mem_per_node_mb, hardware.gpus_per_node, strict=True))

    @cache
    def placed(node: int, tasks: int, gpus: int) -> bool:
        if tasks == 0 and gpus <= 0:
            return True
        if node == len(nodes):
            return False
        cpus, mem, node_gpus = nodes[node]
        for here in range(tasks + 1):
            if here * job.cpus_per_task > cpus or here * job.cpus_per_task * job.mem_per_cpu_mb > mem:
                break
            if placed(node + 1, tasks - here, gpus - (node_gpus if here else 0)):
                return True
        return False

    return job.cpus_per_task > 0 and job.ntasks <= sum(hardware.cpus_per_node) and placed(0, job.ntasks, job.gpus)


def may_run(job: Job, state: ClusterState) -> bool:
    """Return whether all hard rules allow the job on the cluster, written down plainly."""
    one, asked, wishes = state.provider, job.definition, job.wishes
    rate = rate_wei_per_minute(asked, one.prices)
    return (
        one.in_force and packs(asked, one.hardware)
        and not unmet(one.labels, asked.uses, asked.affinity, asked.gpus)
        and affordable_minutes(job.locked_wei, rate) >= max(1, wishes.min_minutes)
        and not (wishes.max_rate_wei and rate > wishes.max_rate_wei)
    )  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(several(wanted, 4), several(states, 4), REFUSALS)
def test_assigned_are_exactly_those_that_fit_somewhere_and_only_where_they_fit(
    jobs: list[Job], clusters: list[ClusterState], refusals: dict[int, dict[str, str]]
) -> None:
    result = decide(jobs, clusters, NOT_HELD_BACK, refusals)
    for job in jobs:
        refused = refusals.get(job.id, {})
        able = {one.provider.address for one in clusters if may_run(job, one)} - refused.keys()
        provider = assigned(result).get(job.id)
        assert provider in able if able else provider is None
    assert sorted([*assigned(result), *(one.job_id for one in result.waiting)]) == sorted(job.id for job in jobs)


@settings(max_examples=60, deadline=None)
@given(several(wanted, 8), several(states, 3))
def test_a_cluster_never_holds_more_than_its_size(jobs: list[Job], clusters: list[ClusterState]) -> None:
    """Assigned jobs start at once, together with all hot jobs of the cluster."""
    result = decide(jobs, clusters, SchedulerSettings(assign_ahead_s=0))
    where, by_id = assigned(result), {job.id: job.definition for job in jobs}
    for state in clusters:
        got = [by_id[job_id] for job_id, provider in where.items() if provider == state.provider.address]
        taken = [*map(Resources.of, got), *(one.needs for one in state.busy)]
        hardware = state.provider.hardware
        sizes = map(sum, (hardware.cpus_per_node, hardware.mem_per_node_mb, hardware.gpus_per_node))
        assert not got or all(sum(each) <= size for each, size in zip(zip(*taken, strict=True), sizes, strict=True))


@settings(max_examples=60, deadline=None)
@given(several(wanted, 3), several(states, 3), states(9), st.integers(0, 2 * CREDIT))
def test_more_credits_or_more_clusters_never_unschedule_a_job(
    jobs: list[Job], clusters: list[ClusterState], other: ClusterState, more_wei: int
) -> None:
    richer = [replace(job, locked_wei=job.locked_wei + more_wei) for job in jobs]
    before = assigned(decide(jobs, clusters, NOT_HELD_BACK)).keys()
    assert before <= assigned(decide(richer, clusters, NOT_HELD_BACK)).keys()
    assert before <= assigned(decide(jobs, [*clusters, other], NOT_HELD_BACK)).keys()
    for job, rich in zip(jobs, richer, strict=True):  # alone, even where jobs are held back
        if job.wishes.prefer is not Prefer.PRICE and decide([job], clusters).assignments:
            assert decide([rich], clusters).assignments
            assert decide([job], [*clusters, other]).assignments


@settings(max_examples=60, deadline=None)
@given(several(wanted, 5), several(states, 4), st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(jobs: list[Job], clusters: list[ClusterState], random: Random) -> None:
    first = decide(jobs, clusters)
    again = decide(random.sample(jobs, len(jobs)), random.sample(clusters, len(clusters)))
    assert assigned(first) == assigned(again)
    assert {one.job_id: one for one in first.waiting} == {one.job_id: one for one in again.waiting}
