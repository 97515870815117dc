"""Remote calls: the program on the node prints results, and the client reads them without unpickling."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import io
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy
import pandas
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepgrid import sbatch, workflow
from deepgrid.client.workflow import read_workflow
from deepgrid.errors import InputError
from deepgrid.recipes import remote
from deepgrid.recipes.on_node import encoded, send
from deepgrid.recipes.results import RemoteError, result_in

TOKEN = "ab" * 16


def called(function: Callable[[Any], Any], item: Any, **more: str) -> tuple[int, list[str]]:
    """Run the program of the node by the command of the job. Returns its exit status and output."""
    content = remote.workflow(TOKEN, None, remote.Resources(), sys.executable)
    variables = {variable["key"]: variable["value"] for variable in content["env"]}
    variables |= {"REMOTE_CALL": remote.pickle_call(function, item)} | more
    done = subprocess.run(
        ["bash", "-c", content["steps"][0]["run"]["command"]], env={**os.environ, **variables}, text=True,
        stdout=subprocess.PIPE, check=False, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout.splitlines()


def test_a_call_returns_its_result_as_json() -> None:
    factor = 3

    def triple(item: dict[str, int]) -> dict[str, int]:
        print("deepgrid-result is only a line of mine")
        return {name: factor * value for name, value in item.items()}

    status, lines = called(triple, {"a": 1, "b": 2})
    assert (status, result_in(lines, TOKEN)) == (0, {"a": 3, "b": 6})


def test_numbers_of_numpy_come_back_as_numbers() -> None:
    def figures(size: int) -> Any:
        import numpy

        values = numpy.arange(size)
        return {"sum": values.sum(), "mean": numpy.float32(1.5), "any": [values.any()]}

    assert result_in(called(figures, 3)[1], TOKEN) == {"sum": 3, "mean": 1.5, "any": [True]}


@pytest.mark.parametrize("wrong", [{"cpus": 0}, {"memory_mb": "4G"}, {"gpus": -1}, {"cpus": True}, {"cpus": 1.5}])
def test_resources_are_whole_numbers(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(wrong))} of Resources is .*; it must be a whole number from"):
        remote.Resources(**wrong)


def test_arrays_and_tables_come_back_as_such() -> None:
    def matrix(size: int) -> Any:
        import numpy

        return numpy.eye(size)

    def several(size: int) -> Any:
        import numpy

        return {"ones": numpy.ones(size), "zeros": numpy.zeros(size)}

    def table(size: int) -> Any:
        import pyarrow

        return pyarrow.table({"x": list(range(size))})

    assert numpy.array_equal(result_in(called(matrix, 100)[1], TOKEN), numpy.eye(100))
    assert sorted(result_in(called(several, 3)[1], TOKEN)) == ["ones", "zeros"]
    assert result_in(called(table, 5)[1], TOKEN) == pyarrow.table({"x": [0, 1, 2, 3, 4]})


def test_an_exception_is_an_error_with_its_class_and_traceback() -> None:
    def divide(by: int) -> float:
        return 1 / by

    status, lines = called(divide, 0)
    assert status == 1
    with pytest.raises(RemoteError, match="raised ZeroDivisionError: division by zero") as caught:
        result_in(lines, TOKEN)
    assert caught.value.kind == "ZeroDivisionError"
    assert "in divide" in caught.value.trace


def test_another_python_and_a_result_that_cannot_be_sent_are_errors() -> None:
    with pytest.raises(RemoteError, match=r"the function was made by 2\.7"):
        result_in(called(abs, 1, REMOTE_PYTHON="2.7")[1], TOKEN)
    with pytest.raises(RemoteError, match="has a object, which is not a value of JSON"):
        result_in(called(lambda _: object(), 1)[1], TOKEN)


class Trap:
    """Fails the test when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("unpickled",)


def test_a_pickled_array_of_a_hostile_cluster_is_refused() -> None:
    def trap(_: int) -> Any:
        import numpy

        return numpy.array([None, {}], dtype=object)

    with pytest.raises(RemoteError, match="is not readable as array"):
        result_in(called(trap, 0)[1], TOKEN)
    assert pickle.dumps(Trap())  # the cluster could have put this there


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[:-1][:-1],
        lambda lines: [line.replace(TOKEN, "cd" * 16) for line in lines],
        lambda lines: [line[:-2] + "==" if not line.startswith("deepgrid") and line else line for line in lines],
        lambda lines: [],
    ],
    ids=["cut", "another token", "changed", "empty"],
)
def test_a_result_that_is_not_whole_is_refused(change: Callable[[list[str]], list[str]]) -> None:
    _, lines = called(lambda item: [item] * 100, "text")
    with pytest.raises(RemoteError, match="no whole result"):
        result_in(change(lines), TOKEN)


@given(st.lists(st.text()))
def test_any_output_is_read_without_a_crash(lines: list[str]) -> None:
    with pytest.raises(RemoteError):
        result_in(lines, TOKEN)


def test_what_is_too_large_or_cannot_be_pickled_is_refused_before_money_moves() -> None:
    with pytest.raises(InputError, match="at most 73728 fit in a job"):
        remote.pickle_call(len, os.urandom(100_000))
    with pytest.raises(InputError, match="cannot be pickled"):
        remote.pickle_call(len, (one for one in ()))


async def test_the_workflow_is_valid_with_and_without_a_container() -> None:
    for image in (None, "python:3.11", {"image": "python:3.11", "apptainer": True}):
        read = await read_workflow(remote.workflow(TOKEN, image, remote.Resources(2, 3000, 1), "python3"))
        assert read.env(REMOTE_CALL=remote.pickle_call(len, [])).render().startswith("#!/bin/bash")
        resources = read.definition.resources
        assert (resources.cpus_per_task, resources.mem_per_cpu, resources.gpus) == (2, 1500, 1)
        (step,) = read.definition.steps
        assert step.run is not None and step.run.resources is not None
        assert step.run.resources.gpus_per_task == 1
    assert workflow.canonical(read.definition)
    assert sbatch.render(read.definition, sbatch.StoragePaths())


def tables() -> dict[str, Any]:
    """Return tables as an honest function returns them."""
    today, some = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), pyarrow.array([True, None, False])
    rows = [
        {
            "int": 1, "float": 2.5, "bool": True, "none": None, "text": "é", "bytes": b"\0", "time": today,
            "day": today.date(), "span": today - today, "decimal": decimal.Decimal("1.50"), "list": [[1], []],
            "struct": {"a": "x", "b": [None]},
        },
        {},
    ]  # fmt: skip
    kinds = pyarrow.table({"day": pyarrow.array(["mon", "tue", "mon"]).dictionary_encode(), "flag": some})
    fixed = pyarrow.array([[1.0, 2.0]] * 3, pyarrow.list_(pyarrow.float32(), 2))
    return {
        "types": pyarrow.Table.from_pylist(rows, pyarrow.Table.from_pylist(rows[:1]).schema),
        "map": pyarrow.table({"m": pyarrow.array([[("a", 1)], None], pyarrow.map_(pyarrow.string(), pyarrow.int8()))}),
        "dictionary": kinds,
        "dictionaries": pyarrow.concat_tables([kinds, kinds.slice(1, 1), kinds]),
        "fixed": pyarrow.table({"f": fixed}).slice(1),
        "no rows": kinds.slice(0, 0),
        "no columns": pyarrow.table({}),
        "pandas": pyarrow.Table.from_pandas(pandas.DataFrame({"c": pandas.Categorical(["a", "b"])}, index=["x", "y"])),
        "numbers": pyarrow.table({"d": pyarrow.array([10**9, 7, 7], "int64").dictionary_encode()}),
    }


@pytest.mark.parametrize("table", [pytest.param(table, id=name) for name, table in tables().items()])
def test_every_usual_table_comes_back(table: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMOTE_TOKEN", TOKEN)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        send(*encoded(table))
    assert result_in(output.getvalue().splitlines(), TOKEN).equals(table, check_metadata=True)
