"""A definition is refused if its figures differ from the chain. The error names each figure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deepgrid.errors import InputError
from deepgrid.lifecycle.job import JobDefinition
from deepgrid.workflow import Definition, JobResources, verify_resources

JOB = Definition(resources=JobResources(tasks=1, cpus_per_task=2, mem_per_cpu=3, gpus=4), steps=())
ON_CHAIN = JobDefinition(gpus=4, mem_per_cpu_mb=3, cpus_per_task=2, ntasks=1, definition_hash="")


def test_equal_figures_pass() -> None:
    verify_resources(JOB, ON_CHAIN)


@pytest.mark.parametrize(
    ("field", "name"),
    [("ntasks", "tasks"), ("cpus_per_task", "cpusPerTask"), ("mem_per_cpu_mb", "memPerCpu"), ("gpus", "gpus")],
)
def test_each_differing_figure_is_named(field: str, name: str) -> None:
    changed: dict[str, Any] = {field: 9}
    with pytest.raises(InputError, match=rf": {name} is \d there and 9 on chain"):
        verify_resources(JOB, replace(ON_CHAIN, **changed))
