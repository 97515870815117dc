"""Writes docs/explanation/attacks.md from the markers of all attacks: `.venv/bin/python -m tests.attacks.page`."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.attacks.report import MARKER, Attack

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[1] / "docs" / "explanation" / "attacks.md"
HEAD = """# Attacks

Every row is a test in `tests/attacks`. The test runs the attack against the real component and asserts an upper limit
of the attacker's gain. `tests/attacks/page.py` generates this page from the markers of the tests.
[Security](security.md) describes the trust between the parties and the open risks.

    ./run test tests/attacks            # the quick attacks; prints a table of the attacks that ran
    ./run test --long tests/attacks     # the long attacks
"""


def attacks() -> list[Attack]:
    """Return the attacks of all test modules without duplicates, ordered by attacker."""
    modules = [importlib.import_module(f"tests.attacks.{file.stem}") for file in sorted(FOLDER.glob("test_*.py"))]
    return sorted({attack for module in modules for attack in _of(module)}, key=lambda one: (one.attacker, one.attack))


def page() -> str:
    """Return the text of the page, with one table per attacker."""
    rows = attacks()
    parts = [HEAD]
    for attacker in dict.fromkeys(row.attacker for row in rows):
        lines = [f"## {attacker[0].upper()}{attacker[1:]}", "", "| attack | gain at most | defence |", "|---|---|---|"]
        mine = (row for row in rows if row.attacker == attacker)
        parts.append("\n".join([*lines, *(f"| {row.attack} | {row.gain} | {row.defence} |" for row in mine)]) + "\n")
    return "\n".join(parts)


def _of(module: ModuleType) -> Iterator[Attack]:
    for value in [module, *vars(module).values()]:
        marks = getattr(value, "pytestmark", ())
        for mark in marks if isinstance(marks, list | tuple) else (marks,):
            yield from _in(mark)


def _in(mark: pytest.Mark | pytest.MarkDecorator) -> Iterator[Attack]:
    """Yield the attack of a marker, or the attacks of a parametrized test's cases."""
    if mark.name == MARKER:
        yield Attack(*mark.args, **mark.kwargs)
    elif mark.name == "parametrize":
        for case in mark.args[1] if len(mark.args) > 1 else ():
            for inner in getattr(case, "marks", ()):
                yield from _in(inner)


if __name__ == "__main__":
    PAGE.write_text(page())
