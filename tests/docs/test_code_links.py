"""The architecture page leads to the code: each function that it names is in the linked file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/explanation/architecture.md"
NAMED = re.compile(r"`([\w.]+)`(?: and `([\w.]+)`)? in \[`[^`]+`\]\(([^)#]+)\)")


def named_code() -> list[tuple[str, Path]]:
    """Return functions and classes that the page names, with the linked file."""
    found = [
        (name, (PAGE.parent / path).resolve())
        for *names, path in NAMED.findall(PAGE.read_text())
        for name in names
        if name
    ]
    assert len(found) > 15, "the page names the code of each step"
    return found


@pytest.mark.parametrize(("name", "file"), named_code(), ids=lambda value: str(getattr(value, "name", value)))
def test_a_named_function_stands_in_the_linked_file(name: str, file: Path) -> None:
    text = file.read_text()
    for part in name.split("."):
        assert re.search(rf"\b(?:def|class|function) {part}\b", text), f"{file.name} defines no {part}"
