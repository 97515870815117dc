"""Assignment of jobs: clusters that fit and can be paid, cheapest first, then least busy; and reasons to wait."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.lifecycle.job import Affinity, Hardware, JobDefinition, Label, Prices, Provider
from deepgrid.lifecycle.states import JobStatus
from deepgrid.scheduling.fit import misfit, unmet
from deepgrid.scheduling.match import Assignment, Cluster, Waiting, match
from tests.lifecycle.support import JOB as CLAIMED_JOB

CREDIT = 10**18
SMALL = JobDefinition(gpus=0, mem_per_cpu_mb=100, cpus_per_task=1, ntasks=1, definition_hash="h")
JOB = replace(CLAIMED_JOB, status=JobStatus.PENDING, provider=None, definition=SMALL, locked_wei=100 * CREDIT)


def cluster(name: str, cpu_price: int, *, taken: int = 0, labels: tuple[Label, ...] = ()) -> Cluster:
    provider = Provider(
        address=f"0x{name}", hardware=Hardware((0, 0), (4, 4), (4000, 4000)), prices=Prices(0, cpu_price, 0),
        labels=(Label("name", name), *labels), approved=True, banned=False,
    )  # fmt: skip
    return Cluster(provider, taken)


def test_the_cheapest_gets_it_and_says_so() -> None:
    [decision] = match([JOB], [cluster("alpha", 2 * CREDIT), cluster("beta", CREDIT // 2)])
    assert decision == Assignment(JOB.id, "0xbeta", "beta fits at 0.5 credits per minute, the cheapest of 2 clusters")


def test_at_equal_prices_the_least_busy_gets_it_and_jobs_of_one_round_spread() -> None:
    jobs = [replace(JOB, id=n, submitted_at=n) for n in range(4)]
    decisions = match(jobs, [cluster("alpha", 1), cluster("beta", 1, taken=1)])
    chosen = [d.provider for d in decisions if isinstance(d, Assignment)]
    assert chosen == ["0xalpha", "0xalpha", "0xbeta", "0xalpha"]


def test_a_job_nobody_can_run_says_why_for_each_cluster() -> None:
    job = replace(JOB, definition=replace(SMALL, ntasks=100_000))
    [decision] = match([job], [cluster("alpha", 1), cluster("beta", 1)])
    assert decision == Waiting(
        job.id,
        "no cluster can take it: alpha: asks for 100000 CPUs, it has 8; beta: asks for 100000 CPUs, it has 8",
    )


def test_less_than_a_minute_is_not_affordable() -> None:
    [decision] = match([replace(JOB, locked_wei=CREDIT - 1)], [cluster("alpha", CREDIT)])
    assert isinstance(decision, Waiting)
    assert "one minute costs 1 credits, 0.999999999999999999 are locked" in decision.reason


def test_a_refuser_is_not_asked_again() -> None:
    clusters = [cluster("alpha", 1), cluster("beta", 2)]
    [decision] = match([JOB], clusters, {JOB.id: {"0xalpha": "node down"}})
    assert isinstance(decision, Assignment)
    assert decision.provider == "0xbeta"


def test_no_cluster_at_all() -> None:
    assert match([JOB], []) == [Waiting(JOB.id, "no cluster is approved and open for jobs")]


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        (replace(SMALL, ntasks=8), ""),
        (replace(SMALL, cpus_per_task=5), "nodes hold 0"),
        (replace(SMALL, cpus_per_task=3, ntasks=2), ""),
        (replace(SMALL, gpus=1), "1 GPUs"),
        (replace(SMALL, mem_per_cpu_mb=5000), "nodes hold 0"),
        (replace(SMALL, mem_per_cpu_mb=9000), "9000 MB of memory"),
    ],
)
def test_fit(definition: JobDefinition, words: str) -> None:
    reason = misfit(definition, Hardware((0, 0), (4, 4), (4000, 4000)))
    assert (words in reason) if words else reason == ""


def test_gpus_must_be_where_the_tasks_are() -> None:
    hardware = Hardware((2, 2), (4, 4), (4000, 4000))
    assert "those reach 2" in misfit(replace(SMALL, gpus=4), hardware)
    assert misfit(replace(SMALL, gpus=4, ntasks=2), hardware) == ""


LABELS = (Label("arch", "amd64"), Label("compute.gflops", "1000"), Label("gpu", "nvidia-rtx"))


@pytest.mark.parametrize(
    ("key", "op", "value", "holds"),
    [
        ("arch", "==", "amd64", True), ("arch", "!=", "amd64", False), ("arch", "=", "arm64", False),
        ("compute.gflops", ">", "999.5", True), ("compute.gflops", ">", "1000", False),
        ("compute.gflops", ">=", "1e3", True), ("compute.gflops", "<", "5000", True),
        ("gpu", "in", "nvidia", True), ("zone", "!=", "x", False), ("arch", "<", "b", True),
    ],
)  # fmt: skip
def test_affinity_operators(key: str, op: str, value: str, holds: bool) -> None:
    assert (unmet(LABELS, (), (Affinity(key, op, value),)) == []) is holds


def test_two_conditions_on_one_key_must_both_hold() -> None:
    both = (Affinity("compute.gflops", ">", "1"), Affinity("compute.gflops", "<", "5"))
    assert unmet(LABELS, (Label("arch", "arm64"),), both) == ["arch==arm64", "compute.gflops<5"]


@given(
    st.integers(1, 50), st.integers(1, 10), st.integers(1, 5000),
    st.lists(st.tuples(st.integers(1, 64), st.integers(1, 64_000)), min_size=1, max_size=5),
)  # fmt: skip
def test_what_fits_can_be_placed(ntasks: int, cpus: int, mem: int, nodes: list[tuple[int, int]]) -> None:
    definition = JobDefinition(0, mem, cpus, ntasks, "h")
    hardware = Hardware((0,) * len(nodes), tuple(n[0] for n in nodes), tuple(n[1] for n in nodes))
    places = 0
    for node_cpus, node_mem in nodes:
        while node_cpus >= cpus and node_mem >= cpus * mem:
            node_cpus, node_mem, places = node_cpus - cpus, node_mem - cpus * mem, places + 1
    assert (misfit(definition, hardware) == "") is (places >= ntasks)
