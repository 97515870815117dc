"""Many parameter sets in one job: each runs with its own variables, and a failed one does not stop the others."""

from __future__ import annotations

import pytest

from deepgrid.errors import InputError
from deepgrid.workflow import Definition, canonical, from_canonical, pack, with_variables
from tests.sbatch.support import Bench, Outcome, job, lint, without_progress

STEPS = """
- run: {command: 'echo "$A-${B-none}"'}
- run: {command: 'exit "${STATUS:-0}"'}
- run: {command: 'echo "then $A"'}
"""


def _ran(bench: Bench, definition: Definition) -> Outcome:
    assert from_canonical(canonical(definition)) == definition
    lint(definition)
    outcome = bench.run(definition)
    assert bench.left_behind() == []
    return outcome


def test_each_set_runs_with_its_own_variables_and_a_line_says_which_set_begins(bench: Bench) -> None:
    sets = [{"A": "1", "B": "x y'$HOME`"}, {"A": "two\nlines"}, {"A": "1", "B": ""}]
    outcome = _ran(bench, pack(job(STEPS, env="[{key: A, value: '0'}, {key: STATUS, value: ''}]"), sets))
    assert outcome.status == 0
    assert outcome.output.splitlines() == [
        "Running: parameter set 1 of 3", "1-x y'$HOME`", "then 1",
        "Running: parameter set 2 of 3", "two", "lines-none", "then two", "lines",
        "Running: parameter set 3 of 3", "1-", "then 1",
    ]  # fmt: skip


def test_a_failed_set_does_not_stop_the_others_and_the_job_fails_with_the_first_status(bench: Bench) -> None:
    sets = [{"A": "1"}, {"A": "2", "STATUS": "7"}, {"A": "3"}, {"A": "4", "STATUS": "9"}]
    outcome = _ran(bench, pack(job(STEPS), sets))
    lines = outcome.output.splitlines()
    assert outcome.status == 7
    assert [line for line in lines if line.startswith("then")] == ["then 1", "then 3"]
    assert [line for line in lines if line.startswith("deepgrid:")] == [
        "deepgrid: parameter set 2 of 4 failed with status 7",
        "deepgrid: parameter set 4 of 4 failed with status 9",
        "deepgrid: of 4 parameter sets, these failed: 2 4",
    ]


def test_what_a_set_writes_and_launches_ends_with_the_set(bench: Bench) -> None:
    steps = """
    - launch: {handleName: side, steps: [{run: {command: 'echo "side $A"'}}]}
    - dependsOn: [side]
      run: {command: 'echo "${LEFT-nothing}"; echo "LEFT=$A" >>"$DEEPSQUARE_ENV"'}
    - run: {command: 'echo "left $LEFT"'}
    """
    outcome = _ran(bench, pack(job(steps), [{"A": "1"}, {"A": "2"}]))
    printed = without_progress(outcome.output)
    assert (outcome.status, printed) == (0, ["side 1", "nothing", "left 1", "side 2", "nothing", "left 2"])


def test_a_variable_replaces_that_of_the_job_and_others_stay(bench: Bench) -> None:
    made = with_variables(
        job("- run: {command: 'echo $A $B'}", env="[{key: A, value: a}, {key: B, value: b}]"), {"A": "c"}
    )
    assert _ran(bench, made).output == "c b\n"


@pytest.mark.parametrize("name", ["PATH", "a b", "", "__dg_item"])
def test_names_that_a_job_may_not_set_are_refused_by_name(name: str) -> None:
    for make in (lambda: with_variables(job(STEPS), {name: "x"}), lambda: pack(job(STEPS), [{"A": "1"}, {name: "x"}])):
        with pytest.raises(InputError, match=f"the variable {name!r} "):
            make()
