"""Hostile text outside the view of the recorder: created folders, the checkers, and the quoting itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deepgrid.sbatch import StoragePaths, render
from deepgrid.sbatch.quoting import only_quoted, quote
from deepgrid.services.script_check import check_script
from deepgrid.workflow import Definition, EnvVar, Step, StepRun, without_texts
from tests.sbatch.hostile import CANARY, FIGURES, hostile
from tests.sbatch.support import Bench

pytestmark = pytest.mark.recorder("hundreds of generated scripts")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_hostile_working_folder_is_just_a_folder(bench: Bench, data: st.DataObject) -> None:
    folder = f"{bench.root}/work/" + data.draw(hostile()).replace("/", "")[:60]
    run = StepRun(command="printf '%s' \"$(pwd; echo .)\"", work_dir=folder)
    outcome = bench.run(Definition(resources=FIGURES, steps=(Step(run=run),)))
    assert (outcome.status, outcome.output) == (0, str(Path(folder)) + "\n.")
    assert not (bench.root / CANARY).exists()


@settings(max_examples=8, deadline=None)  # shellcheck takes a third of a second
@given(hostile(), hostile())
def test_hostile_text_passes_the_checkers(one: str, other: str) -> None:
    run = StepRun(command=one, env=(EnvVar(key="B", value=other),), work_dir="/" + one)
    job = Definition(resources=FIGURES, env=(EnvVar(key="A", value=one),), steps=(Step(name=other, run=run),))
    script = render(job, StoragePaths())
    check_script(script)
    assert "\r" not in script, "sbatch refuses scripts with carriage returns"


@settings(max_examples=100, deadline=None)
@given(hostile(), hostile())
def test_scripts_differ_in_quoted_words_only(one: str, other: str) -> None:
    """The services lint a script without its commands and values. So the rest must not depend on them."""
    run = StepRun(command=one, env=(EnvVar(key="B", value=other),))
    job = Definition(resources=FIGURES, env=(EnvVar(key="A", value=one),), steps=(Step(name="a", run=run),))
    assume("__dg" not in one + other)
    script, common = render(job, StoragePaths()), render(without_texts(job), StoragePaths())
    for key, text, kept in (("A", one, "value"), ("B", other, "value"), ("__dg_command", one, "command")):
        before, after = f"export {key}={quote(text)}", f"export {key}={quote(kept)}"
        assert script.count(before) == common.count(after) == 1
        script = script.replace(before, after)
    assert script == common


def test_templates_cannot_output_unquoted_text() -> None:
    with pytest.raises(TypeError, match="not quoted"):
        only_quoted("text")
    assert only_quoted(quote("a b")) == "'a b'"
    with pytest.raises(ValueError, match="NUL"):
        quote("\0")


def test_a_step_may_have_any_ifs(bench: Bench) -> None:
    """Bash breaks arrays when IFS is the byte that it uses internally to mark words."""
    run = StepRun(command="printf '%s|' a 'b c'", env=(EnvVar(key="IFS", value="\x01"),))
    assert bench.run(Definition(resources=FIGURES, steps=(Step(name="a b", run=run),))).output == "Running: a b\na|b c|"
