"""Any text in any field leaves the script intact: none of it is executed, and all of it arrives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepgrid.errors import InputError
from deepgrid.workflow import Definition, Step, StepRun, parse
from tests.sbatch.hostile import CANARY, FIGURES, Case, cases, check, recorder

AT_ONCE = 10  # cases per example; scripts wait for processes, so several run in parallel


class Recorders:
    """One recorder per script that runs in parallel."""

    def __init__(self, pool: ThreadPoolExecutor, factory: pytest.TempPathFactory, count: int) -> None:
        self._pool = pool
        self._free: SimpleQueue[object] = SimpleQueue()
        self.all = [recorder(factory.mktemp("recorder")) for _ in range(count)]
        for bench in self.all:
            self._free.put(bench)

    def check(self, drawn: list[Case]) -> None:
        list(self._pool.map(self._check, drawn))

    def _check(self, case: Case) -> None:
        bench = self._free.get()
        try:
            check(bench, case)
        finally:
            self._free.put(bench)


@pytest.fixture(scope="module")
def recorders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorders]:
    count = 2 * (os.cpu_count() or 1)
    with ThreadPoolExecutor(count) as pool:
        yield Recorders(pool, tmp_path_factory, count)


several = st.lists(cases(), min_size=AT_ONCE, max_size=AT_ONCE)


@settings(max_examples=50 // AT_ONCE, deadline=None, suppress_health_check=list(HealthCheck))
@given(several)
def test_hostile_fields_change_nothing_but_themselves(recorders: Recorders, drawn: list[Case]) -> None:
    recorders.check(drawn)


@pytest.mark.deep
@pytest.mark.timeout(0)
@settings(max_examples=10_000 // AT_ONCE, deadline=None, suppress_health_check=list(HealthCheck))
@given(several)
def test_ten_thousand_hostile_definitions(recorders: Recorders, drawn: list[Case]) -> None:
    recorders.check(drawn)


def test_the_recorder_detects_executed_text(recorders: Recorders) -> None:
    """`if` is code, and the file that it creates is found. So code in another field would be detected too."""
    bench = recorders.all[0]
    step = Step(if_=f"-z $(touch {bench.root}/{CANARY})", run=StepRun(command="x"))
    assert bench.run(Definition(resources=FIGURES, steps=(step,))).status == 0
    canary = bench.root / CANARY
    assert canary.exists()
    canary.unlink()


@pytest.mark.parametrize("field", ["name", "command", "item"])
def test_a_text_with_nul_is_refused_with_its_position(field: str) -> None:
    """No argument and no variable can contain NUL."""
    text = '"a\\0b"'
    steps = {
        "name": f"- {{name: {text}, run: {{command: x}}}}",
        "command": f"- {{run: {{command: {text}}}}}",
        "item": f"- {{for: {{parallel: false, items: [{text}], steps: []}}}}",
    }[field]
    resources = "resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}\n"
    with pytest.raises(InputError, match="NUL"):
        parse(f"{resources}steps:\n{steps}\n", "job.yaml")
