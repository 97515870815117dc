"""The programs of examples/python run unchanged on the one-machine grid, as a customer starts them."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import nbclient
import nbformat
import numpy
import pytest
from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL

from deepgrid import Grid
from deepgrid.errors import ChainError
from deepgrid.recipes import remote
from tests.grid.customer import PATIENCE_S, Customer

pytestmark = [pytest.mark.deep, pytest.mark.timeout(900)]

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAMS = ("submit_and_wait", "follow_log", "cost_table", "remote_map")


@pytest.fixture
def environment(customer: Customer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables with which programs find the grid and the key."""
    monkeypatch.setenv("DEEPGRID_BOOK", str(customer.grid.book))
    monkeypatch.setenv("DPS_KEY_FILE", str(customer.grid.keys.file("customer")))
    monkeypatch.setenv("HOME", str(customer.home))


@pytest.fixture
def open_grid(environment: None) -> Any:
    with Grid() as opened:
        yield opened


def start(name: str) -> subprocess.Popen[str]:
    program = [sys.executable, str(EXAMPLES / "python" / f"{name}.py")]
    return subprocess.Popen(program, cwd=EXAMPLES, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def output(process: subprocess.Popen[str]) -> str:
    """Return what the program printed. It must succeed."""
    try:
        out, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, errors
    return out


def numbers(grid: Grid, name: str) -> list[int]:
    return [job.id for job in grid.jobs() if job.name == name]


@pytest.mark.usefixtures("environment")
def test_the_programs_print_their_results() -> None:
    """They run in parallel, which takes less time."""
    started = [start(name) for name in PROGRAMS]
    waited, followed, costs, called = (output(process) for process in started)
    assert "Hello world" in waited and waited.endswith("exit status 0\n")
    assert {line.partition(":")[0] for line in followed.splitlines()} == {"first", "second"}
    assert followed.count("Hello world") == 2
    assert [row.split()[0] for row in costs.splitlines()] == ["cluster", "alpha", "beta", "Lock"]
    assert re.search(r"^1000! has 2568 digits\n-1! has no digits: .+ValueError", called, re.M)


def test_a_sweep_that_was_killed_continues_with_the_same_jobs(open_grid: Grid) -> None:
    killed = start("sweep")
    try:
        assert killed.stdout is not None
        assert killed.stdout.readline().startswith("job ")  # one of six is over
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    printed = output(start("sweep"))
    jobs = numbers(open_grid, "pi")
    assert len(jobs) == 6
    assert sorted(int(number) for number in re.findall(r"^job (\d+) ", printed, re.M)) == sorted(jobs)
    assert "pi is about 3.1" in printed


@pytest.mark.usefixtures("prefect_api")
def test_a_flow_that_is_repeated_finds_its_jobs(open_grid: Grid, tmp_path: Path) -> None:
    program = tmp_path / "prefect_flow.py"
    shutil.copy(EXAMPLES / "python" / "prefect_flow.py", program)
    areas = runpy.run_path(str(program))["areas"]
    run, failures = Grid.run, iter([ChainError("The node does not answer.")])

    def run_and_lose(grid: Grid, *args: Any, **options: Any) -> Any:
        job = run(grid, *args, **options)
        if error := next(failures, None):
            raise error
        return job

    with mock.patch.object(Grid, "run", run_and_lose):
        assert areas() == [4, 9, 16]
    assert next(failures, None) is None
    first = numbers(open_grid, "squares")
    assert areas() == [4, 9, 16]
    assert numbers(open_grid, "squares") == first and len(first) == 3


@pytest.mark.timeout(3600)  # a hundred jobs on a machine that others use, too
@pytest.mark.usefixtures("prefect_api")
@pytest.mark.parametrize(("steps", "places"), [(3, 2), (10, 10)])
def test_a_study_that_was_killed_is_resumed_with_the_same_jobs(
    open_grid: Grid, tmp_path: Path, steps: int, places: int
) -> None:
    known = set(numbers(open_grid, "measure"))
    program = [sys.executable, str(EXAMPLES / "python" / "grid_study.py"), f"wing{steps}", str(steps), str(places)]
    api = {"PREFECT_API_URL": PREFECT_API_URL.value(), "PREFECT_API_AUTH_STRING": PREFECT_API_AUTH_STRING.value()}
    where: dict[str, Any] = {"cwd": tmp_path, "env": {**os.environ, **{key: text for key, text in api.items() if text}}}
    killed = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **where)
    said: list[str] = []
    try:
        assert killed.stdout is not None
        for line in killed.stdout:
            said.append(line)
            if f"step {steps // 3 - 1} measured" in line:
                break
        else:
            pytest.fail("".join(said))
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    before = set(numbers(open_grid, "measure")) - known
    assert before
    resumed = subprocess.run(program, capture_output=True, text=True, check=False, **where)
    total = sum(step * 100 + place for step in range(steps) for place in range(places))
    assert f"the total is {total}" in resumed.stdout, resumed.stdout + resumed.stderr
    jobs = set(numbers(open_grid, "measure")) - known
    assert len(jobs) == steps * places
    assert before <= jobs


@pytest.mark.usefixtures("environment")
def test_the_notebook_shows_a_job_and_its_output() -> None:
    notebook = nbformat.read(EXAMPLES / "python" / "live_log.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    client = nbclient.NotebookClient(notebook, timeout=int(PATIENCE_S), resources={"metadata": {"path": EXAMPLES}})
    client.execute()
    shown = {
        number: "".join(one.data.get("text/html", "") for one in cell.outputs if "data" in one)
        for number, cell in enumerate(notebook.cells)
        if cell.cell_type == "code"
    }
    assert "Hello world" in shown[3]
    assert "finished" in shown[5].lower()
    assert "alpha" in shown[6] and "beta" in shown[6]


def test_remote_calls_return_arrays_and_the_exceptions_of_the_node(open_grid: Grid, customer: Customer) -> None:
    """Two equal calls are two jobs, and the values come in the order of the items."""

    def eye(size: int) -> Any:
        import numpy

        return numpy.eye(size)

    site = customer.grid.state / "storage" / "site"  # NumPy for the nodes' own Python
    for folder in Path(numpy.__file__).parents[1].glob("numpy*"):
        shutil.copytree(folder, site / folder.name)
    calls = remote.map(open_grid, eye, [3, 2, 3, -1], credits=100, python=f"env PYTHONPATH={site} python3")
    *arrays, refused = calls
    assert [array.value().tolist() for array in arrays] == [numpy.eye(size).tolist() for size in (3, 2, 3)]
    assert len({call.job.id for call in arrays}) == 3
    with pytest.raises(remote.RemoteError, match="negative dimensions") as caught:
        refused.value()
    assert caught.value.kind == "ValueError" and "in eye" in caught.value.trace
