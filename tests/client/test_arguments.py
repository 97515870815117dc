"""Arguments as programs have them: numbers of other libraries, paths, texts; what has no meaning names its place."""

from __future__ import annotations

import os
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import Any, cast

import numpy as np
import pytest

from deepgrid.client import InputError
from deepgrid.client.files.local_files import scan
from deepgrid.client.job_values import job_number, seconds_of, wei_of
from deepgrid.client.order import Terms
from deepgrid.client.repeat.chosen_input import with_input
from deepgrid.client.repeat.marks import mark_of
from deepgrid.client.repeat.retries import checked_retries
from deepgrid.client.workflow import Workflow, read_workflow, variable_texts
from deepgrid.lifecycle.job import Label
from tests.cli.live import EXAMPLE

RESOURCES = {"tasks": np.int64(2), "cpusPerTask": 1, "memPerCpu": np.uint16(100), "gpus": 0}


class Colour(Enum):
    RED = "red"


ENTRIES = {"A": Decimal("1.10"), "B": Colour.RED, "C": np.int16(7)}


def steps(command: Any) -> dict[str, Any]:
    return {"resources": RESOURCES, "steps": [{"run": {"command": command}}]}


async def test_a_workflow_may_hold_numbers_of_numpy_paths_and_tuples() -> None:
    content = steps(PurePosixPath("/opt/program")) | {"env": ({"key": "X", "value": np.float64(0.5)},)}
    job = (await read_workflow(content)).definition
    assert (job.resources.tasks, job.resources.mem_per_cpu) == (2, 100)
    assert job.steps[0].run is not None
    assert (job.steps[0].run.command, job.env[0].value) == ("/opt/program", "0.5")


async def test_enumerations_and_decimals_are_their_values() -> None:
    content = steps("x") | {"env": [{"key": key, "value": value} for key, value in ENTRIES.items()]}
    content["resources"] = RESOURCES | {"tasks": Decimal(2)}
    job = (await read_workflow(content)).definition
    assert (job.resources.tasks, [one.value for one in job.env]) == (2, ["1.10", "red", "7"])
    again = job.model_copy(update={"env": ()})
    assert [one.value for one in Workflow(again, "x").env(ENTRIES).definition.env] == ["1.10", "red", "7"]


def test_what_has_no_text_is_no_variable() -> None:
    for value in (b"x", object(), len, np.array([1, 2])):
        with pytest.raises(InputError, match="The variable P "):
            variable_texts({"P": value})
    with pytest.raises(InputError, match=r"1 \(int\) is not the name of a variable"):
        variable_texts({1: "x"})  # type: ignore[dict-item]


async def test_a_workflow_that_contains_itself_is_refused() -> None:
    content = steps("x")
    content["steps"].append(content)
    with pytest.raises(InputError, match="nested too deeply, or contains itself"):
        await read_workflow(content)


@pytest.mark.parametrize("value", [b"x", object(), 1j, float("nan"), np.array([1, 2])])
async def test_what_yaml_cannot_express_is_named_by_its_place_and_type(value: object) -> None:
    with pytest.raises(InputError, match=r"^steps\[0\].run.command: YAML cannot express .* " + type(value).__name__):
        await read_workflow(steps(value))


def test_numbers_of_jobs_are_any_whole_numbers_and_their_digits() -> None:
    assert [job_number(one) for one in (6, "6", np.int64(6))] == [6, 6, 6]


@pytest.mark.parametrize("value", [0, -1, True, "six", 2**31, 1.0, ""])
async def test_what_is_no_job_is_neither_an_input_nor_an_earlier_job(value: Any) -> None:
    workflow = await read_workflow(EXAMPLE)
    with pytest.raises(InputError, match="is not the number of a job"):
        await with_input(cast(Any, None), workflow, (), value, Terms())
    with pytest.raises(InputError, match="is not the number of a job"):
        Terms().following(value, None)


async def test_a_job_follows_another_one_and_reads_its_output() -> None:
    first: Any = np.int64(7)
    job = (await with_input(cast(Any, None), await read_workflow(EXAMPLE), (), first, Terms())).definition
    assert job.input is not None and (job.input.job, Terms().following(first, None).after) == (7, 7)


@pytest.mark.parametrize("note", ["x\ud800", 5])
def test_what_is_no_text_is_no_note(note: Any) -> None:
    assert mark_of(None, None) is None
    with pytest.raises(InputError, match="A note is a text"):
        mark_of(None, note)


def test_retries_and_times_may_be_of_any_whole_number() -> None:
    assert checked_retries(np.int64(2)) == 2
    with pytest.raises(InputError, match="not a duration"):
        seconds_of(10**400)


def test_a_name_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt")).write_text("x")
    with pytest.raises(InputError, match=r"caf\\udce9.txt' is not UTF-8"):
        scan([tmp_path])


def test_amounts_and_times_are_numbers_of_any_library() -> None:
    whole, broken = cast(Any, np.int64(3)), cast(Any, np.float64(1.5))
    assert wei_of(whole) == 3 * 10**18
    with pytest.raises(InputError, match="1.5 is a float") as caught:
        wei_of(broken)
    assert "Decimal('1.5')" in caught.value.next_step
    numbers: list[Any] = [np.int64(90), Decimal(90), np.float32(90)]
    assert [seconds_of(one) for one in numbers] == [90, 90, 90]


@pytest.mark.parametrize("value", ["six", "6.0", "-1", "", None, 6.0, True, [6], -1, 2**256])
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
