"""The check of the pages' commands finds the faults of a command."""

from __future__ import annotations

import pytest

from tests.docs.blocks import commands
from tests.docs.command_line import fault


@pytest.mark.parametrize(
    "line",
    [
        "dps submit job.yaml --credits 100 --affinities 'mem>=4000' -e",
        "DPS_KEY_FILE=key dps job get ID --json > job.json",
        "dps --debug credit get || ./run status",
        "./run bench gas && ./run test --long tests/attacks",
        "prefect deployment run collect_zombies/alpha --param grace_s=5",
        "curl -s http://localhost",
    ],
)
def test_a_right_command(line: str) -> None:
    assert not [wrong for wrong in map(fault, commands(line)) if wrong]


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("dps fly", "no verb"),
        ("dps submit job.yaml --credit 100", "no option --credit"),
        ("dps job get", "0 arguments instead of 1 to 1"),
        ("dps job get 1 2 --json", "2 arguments"),
        ("echo | dps submit job.yaml --credits", "needs a value"),
        ("./run fly", "no command fly"),
        ("./run bench nothing", "no bench nothing"),
        ("./run test tests/nothing", "no tests/nothing"),
        ("prefect deployment run nothing/alpha", "no deployment nothing/alpha"),
        ("prefect deployment run collect_zombies/alpha -p nothing=1", "has no nothing=1"),
        (".venv/bin/python -m tests.nothing", "no module tests.nothing"),
    ],
)
def test_a_wrong_command(line: str, wrong: str) -> None:
    assert any(wrong in found for found in map(fault, commands(line)))
