"""A condition that bash cannot parse is refused when the file is checked. Nothing of it runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from deepgrid.modules import conditions
from tests.modules.support import HEAD, faults, folder, load

WRONG = "is not a test that bash's [[ ]] can evaluate; write one such as $A = 1, or -e $FILE"


@pytest.fixture(autouse=True)
def _not_known_yet() -> None:
    conditions._is_condition.cache_clear()


@pytest.mark.parametrize(
    "condition",
    [
        "1 == ",
        "x y",
        "-f",
        " ",
        '"a" == "',
        "1 = 1 # x",
        "1 = 1 ]",
        "(a",
        "$(cat <<E\na) == a",
        "1 = 1 && ",
        "'",
        "a\n]",
    ],
)
def test_a_condition_that_bash_cannot_parse_is_refused(condition: str, cache: Path) -> None:
    assert faults(f"- {{run: {{command: x}}, if: {json.dumps(condition)}}}\n", cache) == [
        f"job.yaml:3:27: steps[0].if: {WRONG}"
    ]


def test_brackets_around_a_condition_are_named(cache: Path) -> None:
    assert faults("- if: '[ 1 = 1 ]'\n- if: '1 == '\n", cache) == [
        f"job.yaml:3:7: steps[0].if: {WRONG}, without the brackets around it",
        f"job.yaml:4:7: steps[1].if: {WRONG}",
    ]


@pytest.mark.parametrize(
    "condition",
    [
        "1 = 1", "x", "true", "$X =~ ^(a|b)$", "! -e $FILE && ( $A == a* || $B -gt 5 )", "$(date +%u) == 1", "é = é",
        "-n ${A:-}", "1 = 1\n", '"$A" == "it\'s"', "$A == +(a|b)", "$((1 + 1)) -eq 2", "-v A[0]",
    ],
)  # fmt: skip
def test_conditions_of_all_kinds_are_accepted(condition: str, cache: Path) -> None:
    load(f"- {{run: {{command: x}}, if: {json.dumps(condition)}}}\n", cache)


@pytest.mark.parametrize(
    "condition", ["$(touch canary) = x", "1 = 1 ]]; touch canary; [[ 1", "`touch canary` == 1", "${A:=$(touch canary)}"]
)
def test_nothing_of_a_condition_runs(condition: str, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("environment").write_text("touch canary\n")
    monkeypatch.setenv("BASH_ENV", os.path.abspath("environment"))
    load(f"- {{run: {{command: x}}, if: {json.dumps(condition)}}}\n", cache)
    assert not Path("canary").exists()


def test_conditions_of_modules_are_checked_at_their_place(cache: Path) -> None:
    folder(HEAD + "steps:\n{% if true %}\n- steps: [{if: '1 == '}]\n{% endif %}\n")
    assert faults("- use: {source: ./m}\n", cache) == [
        f"m/module.yaml:6:16: steps[0].steps[0].if: {WRONG} (used by job.yaml:3:8: steps[0].use)"
    ]


def test_without_bash_conditions_are_not_checked(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    load("- if: '1 == '\n", cache)
