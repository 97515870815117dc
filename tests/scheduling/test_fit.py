"""A cluster fits a job if its nodes have room for tasks and GPUs, and its labels meet the conditions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid.lifecycle.job import Affinity, Hardware, JobDefinition, Label
from deepgrid.scheduling.fit import misfit, mismatch, unmet

SMALL = JobDefinition(gpus=0, mem_per_cpu_mb=100, cpus_per_task=1, ntasks=1, definition_hash="h")


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


def test_a_mismatch_says_which_value_a_cluster_has_instead() -> None:
    wanted = (Affinity("mem", ">=", "400000"), Affinity("gpu", "==", "h100"), Affinity("storage.s3", "==", "true"))
    labels = (Label("mem", "8000"), Label("mem", "4000"), Label("storage.s3", "false"))
    assert mismatch(labels, (), wanted) == (
        "has no label gpu==h100, storage.s3==true (s5cmd, for input and output over S3); "
        "has mem=8000 and 4000, not mem>=400000"
    )
    assert mismatch((Label("mem", "500000"),), (), wanted[:1]) == ""


@pytest.mark.situation(
    "nodes", "a job wants more GPUs of a type than the cluster has of it", "the cluster does not suit"
)
def test_a_cluster_needs_all_gpus_of_the_type_that_a_job_names() -> None:
    labels = (Label("gpu.a100", "4"), Label("gpu.v100", "4"))
    a100, v100 = Affinity("gpu.a100", ">=", "1"), Affinity("gpu.v100", ">", "1")
    assert unmet(labels, (), (a100,), gpus=4) == []
    assert unmet(labels, (), (a100,), gpus=6) == ["gpu.a100>=6"]
    assert unmet(labels, (Label("gpu.a100", "4"),), (), gpus=6) == ["gpu.a100>=6"]
    assert mismatch(labels, (), (a100,), gpus=6) == "has gpu.a100=4, not gpu.a100>=6"
    assert unmet(labels, (), (a100, v100), gpus=6) == []  # any type
    assert unmet(labels, (), (Affinity("gpu.a100", "<", "8"),), gpus=6) == []
