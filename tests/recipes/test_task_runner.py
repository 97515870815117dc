"""Tasks of a Prefect flow as jobs: one job per call, one sweep per map, found again by a flow that was killed."""

from __future__ import annotations

import inspect
import json
import math
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prefect import flow, task
from prefect.client.orchestration import get_client

from deepgrid.client.sweep.summary import Unsubmitted
from deepgrid.errors import InputError
from deepgrid.recipes.task_runner import Call, GridTaskRunner
from deepgrid.recipes.task_source import call_text, source_of
from tests.recipes.local_grid import LocalGrid
from tests.temporary_prefect import temporary_prefect

HERE_ONLY = 3


@pytest.fixture(scope="module")
def prefect() -> Iterator[None]:
    with temporary_prefect():
        yield


@pytest.fixture
def local() -> LocalGrid:
    return LocalGrid()


@task
def area(side: int) -> float:
    return math.sqrt(side**4)


@task
def total(areas: list[float], unit: str = "m2") -> str:
    return f"{sum(areas):.0f} {unit}"


@task(retries=1, retry_delay_seconds=0)
def fails_once(mark: str) -> str:
    from pathlib import Path

    file = Path(mark)
    if not file.exists():
        file.touch()
        raise ValueError("the first time")
    return "done"


def study(local: LocalGrid, key: str | None = "study") -> GridTaskRunner:
    return GridTaskRunner(credits=1, key=key, python=sys.executable, grid=lambda: local)  # type: ignore[arg-type, return-value]


def task_run_names(flow_run_id: Any) -> set[str]:
    with get_client(sync_client=True) as client:
        return {run.name for run in client.read_task_runs() if run.flow_run_id == flow_run_id}


@pytest.mark.long
def test_submit_is_a_job_and_map_one_sweep(prefect: None, local: LocalGrid) -> None:
    @flow(task_runner=study(local))
    def areas() -> str:
        sides = area.map([2, 3, 4])
        return str(total.submit(sides.result()).result())

    state = areas(return_state=True)
    assert state.result() == "29 m2"
    assert (len(local.jobs), local.sweeps) == (4, 1)
    wanted = {"area job 1", "area job 2", "area job 3", "total job 4"}
    deadline = time.monotonic() + 60
    while task_run_names(state.state_details.flow_run_id) != wanted:  # they travel as events
        assert time.monotonic() < deadline
        time.sleep(0.5)


@pytest.mark.long
def test_a_killed_study_finds_its_jobs(prefect: None, local: LocalGrid) -> None:
    class Killed(BaseException):
        """Ends the process, as far as the flow can see."""

    def steps(last: int) -> list[str]:
        @flow(task_runner=study(local))
        def ten_steps() -> list[str]:
            found = []
            for step in range(10):
                if step == last:
                    raise Killed
                found.append(total.submit(area.map([step, step + 1]), unit=str(step)).result())
            return found

        return ten_steps()

    with pytest.raises(Killed):
        steps(last=4)
    assert len(local.jobs) == 12
    before = dict(local.jobs)
    assert steps(last=10)[3] == "25 3"
    assert len(local.jobs) == 30
    assert all(local.jobs[key] is job for key, job in before.items())


@pytest.mark.long
def test_a_retry_is_another_job(prefect: None, local: LocalGrid, tmp_path: Path) -> None:
    @flow(task_runner=study(local, key=None))
    def retried() -> str:
        return str(fails_once.submit(str(tmp_path / "mark")).result())

    assert retried() == "done"
    assert sorted(job.status.name for job in local.jobs.values()) == ["FAILED", "FINISHED"]


@pytest.mark.long
@pytest.mark.parametrize("as_sweep", [False, True])
def test_a_stopped_flow_cancels_its_jobs(prefect: None, local: LocalGrid, as_sweep: bool) -> None:
    local.stuck.add(call_text(area.fn, {"side": 5}))

    @flow(task_runner=study(local))
    def stopped() -> None:
        area.map([5]) if as_sweep else area.submit(5)
        while not local.jobs:
            pass
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert [job.cancelled for job in local.jobs.values()] == [True]


def test_a_retry_submits_what_the_sweep_could_not() -> None:
    place: Future[Any] = Future()
    place.set_result(Unsubmitted({}, InputError("The services refused it.")))
    asked: list[str] = []
    runner, sweep = (
        SimpleNamespace(submit_job=lambda _task, key, _text: asked.append(key)),
        SimpleNamespace(key="sweep"),
    )
    call = Call(runner, area, "study", sweep, place)  # type: ignore[arg-type]
    call._key = "own"
    with pytest.raises(InputError, match="refused it"):
        call._first("{}", attempts=1)
    assert call._first("{}", attempts=2)[1] == "own"
    assert asked == ["own"]


def test_the_text_of_a_task_has_its_imports_and_no_decorator() -> None:
    assert source_of(area.fn) == "import math as math\ndef area(side):\n    return math.sqrt(side ** 4)"


def test_the_text_of_a_task_runs_without_the_names_of_its_defaults() -> None:
    def scale(x: int, by: int = HERE_ONLY, /, with_: object = HERE_ONLY, *, plus: int = HERE_ONLY, most: int) -> int:
        return min(most, x * by + plus)

    bound = inspect.signature(scale).bind(2, most=100)
    bound.apply_defaults()
    names: dict[str, Any] = {}
    exec(source_of(scale), names)  # noqa: S102 - as the node does
    assert names["scale"](**json.loads(call_text(scale, bound.arguments))) == 9


def test_a_task_with_any_number_of_arguments_is_refused() -> None:
    """The node got `options={'options': {'lr': 2}}`, or could not call the task after the job was paid."""

    def train(x: int, **options: int) -> int:
        return x + len(options)

    def mean(*values: int) -> float:
        return sum(values) / len(values)

    for function in (train, mean):
        with pytest.raises(InputError, match="takes any number of arguments"):
            source_of(function)


def test_a_task_that_needs_more_than_its_arguments_is_refused() -> None:
    factor = 2

    def with_global(x: int) -> int:
        return x * HERE_ONLY

    def with_closure(x: int) -> int:
        return x * factor

    async def later(x: int) -> int:
        return x

    for function, name in ((with_global, "HERE_ONLY"), (with_closure, "factor")):
        with pytest.raises(InputError, match=f"uses {name}, which only exists here"):
            source_of(function)
    with pytest.raises(InputError, match="not a plain function"):
        source_of(later)


@pytest.mark.parametrize("value", [{1}, object(), float("nan"), "x" * 200_000, {5: 1}, [{"a": ({None: 1},)}]])
def test_arguments_are_small_values_of_json(value: object) -> None:
    with pytest.raises(InputError, match="of the task area"):
        call_text(area.fn, {"side": value})


def test_a_failed_attempt_is_waited_for_until_no_repetition_is_left() -> None:
    """A flow that starts again finds its first attempt, which is over. The second one may run, and is paid."""

    class Lost:
        id, over, retries_left = 5, True, 1

        def wait(self, _: float) -> None:  # finds the second attempt, which finishes
            self.id, self.retries_left = 6, 0

    job: Any = Lost()
    assert GridTaskRunner(credits=1, retries=1).wait(job).id == 6
