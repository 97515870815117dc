"""Help in terminals of any width: the names of options are whole, and no line is too long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from deepgrid.cli.lazy import LazyCommand, as_command
from deepgrid.cli.main import COMMANDS


def verbs(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield all verbs below a command, with their names."""
    if isinstance(command, LazyCommand):
        command = as_command(command._load())
    children = getattr(command, "commands", None)
    if children is None:
        yield name, command
    for child, verb in (children or {}).items():
        yield from verbs(verb, f"{name} {child}")


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_no_name_of_an_option_is_cut(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    faults, count = [], 0
    for command in COMMANDS:
        for name, verb in verbs(command, f"dps {command.name}"):
            with pytest.raises(typer.Exit):
                verb.make_context(name, ["--help"])
            text = capsys.readouterr().out
            names = {option for one in verb.params for option in one.opts if option.startswith("--")}
            faults += [f"{name} {one}" for one in names if not re.search(rf"(?<![\w-]){one}(?![\w-])", text)]
            faults += [f"{name}: {line}" for line in text.splitlines() if len(line) > columns and " " in line.strip()]
            count += 1
    assert count > 80
    assert faults == []
