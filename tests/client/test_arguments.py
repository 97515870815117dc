"""Arguments as programs have them: numbers of other libraries, paths, texts; what has no meaning names its place."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest

from deepgrid.client import InputError
from deepgrid.client.job_values import job_number
from deepgrid.client.order import Terms
from deepgrid.client.workflow import read_workflow
from deepgrid.lifecycle.job import Label
from tests.cli.live import EXAMPLE

RESOURCES = {"tasks": np.int64(2), "cpusPerTask": 1, "memPerCpu": np.uint16(100), "gpus": 0}


def steps(command: Any) -> dict[str, Any]:
    return {"resources": RESOURCES, "steps": [{"run": {"command": command}}]}


async def test_a_workflow_may_hold_numbers_of_numpy_paths_and_tuples() -> None:
    content = steps(PurePosixPath("/opt/program")) | {"env": ({"key": "X", "value": np.float64(0.5)},)}
    job = (await read_workflow(content)).definition
    assert (job.resources.tasks, job.resources.mem_per_cpu) == (2, 100)
    assert job.steps[0].run is not None
    assert (job.steps[0].run.command, job.env[0].value) == ("/opt/program", "0.5")


@pytest.mark.parametrize("value", [b"x", object(), 1j, float("nan"), np.array([1, 2])])
async def test_what_yaml_cannot_express_is_named_by_its_place_and_type(value: object) -> None:
    with pytest.raises(InputError, match=r"^steps\[0\].run.command: YAML cannot express .* " + type(value).__name__):
        await read_workflow(steps(value))


def test_numbers_of_jobs_are_any_whole_numbers_and_their_digits() -> None:
    assert [job_number(one) for one in (6, "6", np.int64(6))] == [6, 6, 6]


@pytest.mark.parametrize("value", ["six", "6.0", "-1", "", None, 6.0, True, [6]])
def test_other_values_are_no_numbers_of_jobs(value: object) -> None:
    with pytest.raises(InputError, match=f"{type(value).__name__}.* is not the number of a job"):
        job_number(value)


def test_one_label_needs_no_list() -> None:
    assert Terms.of(uses="os=linux", affinities="mem>=4").uses == (Label("os", "linux"),)


async def test_a_variable_that_is_none_is_refused_by_name() -> None:
    workflow = await read_workflow(EXAMPLE)
    assert workflow.env(A=1, B=0.5, C=Path("x")).definition.env[-1].value == "x"
    with pytest.raises(InputError, match="The variable P is None"):
        workflow.env(A=1, P=None)
