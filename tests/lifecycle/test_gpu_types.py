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
