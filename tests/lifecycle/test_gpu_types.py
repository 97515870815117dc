"""Types of GPUs: the labels of a cluster, and the type that a job names."""

from __future__ import annotations

import pytest

from deepgrid.lifecycle.gpu_types import named_type, with_gpu_types
from deepgrid.lifecycle.job import Affinity, JobDefinition, Label
from deepgrid.scheduling.fit import unmet

COUNTS = {"A100": 8, "v100": 2}


def definition(*uses: Label, affinity: tuple[Affinity, ...] = (), gpus: int = 1) -> JobDefinition:
    return JobDefinition(gpus, 100, 1, 1, "", uses=uses, affinity=affinity)


@pytest.mark.situation(
    "nodes", "GPUs of several types in one partition",
    "a label per type has their number (`gpu.a100=8`), and a job that names a type gets it (`--gpus=a100:1`)",
)  # fmt: skip
def test_a_label_per_type_counts_gpus_and_a_job_names_one() -> None:
    labels = with_gpu_types([Label("gpu.k80", "1"), Label("gpu", "nvidia")], COUNTS)
    assert labels == (Label("gpu", "nvidia"), Label("gpu.a100", "8"), Label("gpu.v100", "2"))
    wanted = definition(affinity=(Affinity("gpu.a100", ">=", "1"),))
    assert unmet(labels, wanted.uses, wanted.affinity) == []
    assert named_type(wanted, COUNTS) == "A100"
    assert named_type(definition(Label("gpu", "v100")), COUNTS) == "v100"


def test_a_job_that_names_no_type_or_several_gets_any() -> None:
    assert named_type(definition(), COUNTS) == ""
    assert named_type(definition(Label("gpu", "h100")), COUNTS) == ""
    assert named_type(definition(Label("gpu", "v100"), Label("gpu.a100", "8")), COUNTS) == ""
    assert named_type(definition(Label("gpu", "v100"), gpus=0), COUNTS) == ""


@pytest.mark.situation("nodes", "a job that excludes a type of GPU (`gpu!=a100`)", "it gets another type")
def test_a_job_never_gets_a_type_that_it_excludes() -> None:
    no_a100 = Affinity("gpu", "!=", "a100")
    assert named_type(definition(affinity=(no_a100,)), COUNTS) == "v100"
    assert named_type(definition(affinity=(no_a100,)), {**COUNTS, "k80": 4}) == "k80"
    assert named_type(definition(affinity=(no_a100, Affinity("gpu", "!=", "v100"))), COUNTS) == ""
    both = (Affinity("gpu.a100", ">=", "1"), Affinity("gpu", "!=", "v100"))
    assert named_type(definition(affinity=both), COUNTS) == "A100"


@pytest.mark.parametrize(
    ("key", "op", "value", "kind"),
    [
        ("gpu.a100", "<", "8", ""),
        ("gpu.a100", "<=", "8", ""),
        ("gpu.a100", "!=", "4", ""),
        ("gpu.a100", ">", "1", "A100"),
        ("gpu.a100", "==", "8", "A100"),
        ("gpu", "==", "a100", "A100"),
        ("gpu", ":in:", "a1", "A100"),
        ("gpu", ":in:", "100", ""),
        ("gpu", ">=", "a100", ""),
    ],
)
def test_only_conditions_that_want_a_type_name_it(key: str, op: str, value: str, kind: str) -> None:
    assert named_type(definition(affinity=(Affinity(key, op, value),)), COUNTS) == kind
