"""The simulation of a cluster's queue, one cluster at a time and for all clusters while a round fills them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from deepgrid.lifecycle.states import JobStatus
from deepgrid.scheduling.market import HotJob, Resources
from deepgrid.scheduling.occupancy import Step, estimated_start, free_steps
from deepgrid.scheduling.tables.starts import STEPS, StartTable
from tests.scheduling.markets import NOW, hot, small

M, S = JobStatus.META_SCHEDULED, JobStatus.SCHEDULED


def start(*busy: HotJob, cpus: int = 1) -> float:
    """Return the minutes until a job of this many CPUs starts on a cluster of 8."""
    return (estimated_start(free_steps(small("a", busy=busy), NOW), Resources(cpus, cpus, 0)) - NOW) / 60


def test_an_idle_cluster_starts_a_job_now() -> None:
    assert start(cpus=8) == 0


def test_a_job_starts_when_enough_has_ended() -> None:
    assert [start(hot(4, 10), hot(2, 5), cpus=cpus) for cpus in (2, 3, 4, 5)] == [0, 5, 5, 10]


def test_no_job_overtakes_the_queue() -> None:
    assert start(hot(8, 10), hot(4, 5, S), hot(8, 7, M)) == 10 + 5 + 7


def test_an_overdue_job_ends_soon() -> None:
    assert start(hot(8, -5)) == 1


def test_a_job_larger_than_the_cluster_never_starts() -> None:
    assert start(cpus=9) == float("inf")


JOBS = st.lists(st.builds(hot, st.integers(1, 8), st.integers(1, 60), st.just(S)), max_size=12)


@settings(deadline=None)
@given(JOBS, st.integers(1, 8))
def test_placing_jobs_one_by_one_is_the_same_as_simulating_the_queue(queue: list[HotJob], cpus: int) -> None:
    table = StartTable([free_steps(small("a"), NOW)], NOW, NOW)
    for job in queue:
        needs = np.array(job.needs, np.float64)
        table.place(0, needs, table.start(needs, 0), 60.0 * job.remaining_minutes)
    needs = np.array((cpus, cpus, 0.0))
    expected = estimated_start(free_steps(small("a", busy=tuple(queue)), NOW), Resources(cpus, cpus, 0))
    assert table.start(needs, 0) == table.starts(needs, np.array([True]))[0] == expected


@settings(deadline=None)
@given(st.lists(st.integers(1, 10_000), min_size=STEPS, max_size=5 * STEPS), st.integers(1, 200))
def test_merged_steps_are_never_too_early(times: list[int], cpus: int) -> None:
    steps = [Step(at, float(number), 1e9, 0.0) for number, at in enumerate(sorted(times))]
    table = StartTable([steps], 0, 0)
    exact = estimated_start(steps, Resources(cpus, 0, 0))
    assert table.start(np.array((float(cpus), 0.0, 0.0)), 0) >= exact
    assert table.start(np.array((float(len(times) - 1), 0.0, 0.0)), 0) == steps[-1].at
