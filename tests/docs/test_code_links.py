"""From the README, the code of each step of a job's life is two links away, and the function is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/architecture.md"
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


def test_the_readme_leads_to_the_life_of_a_job_and_each_step_to_its_code() -> None:
    assert "(docs/explanation/architecture.md#the-life-of-a-job)" in (ROOT / "README.md").read_text()
    life = PAGE.read_text().partition("## The life of a job")[2].partition("## The circle")[0]
    steps = [line for line in life.splitlines() if line.startswith("| ") and not line.startswith(("| state", "| step"))]
    assert len(steps) >= 18
    for step in steps:
        linked = re.findall(r"\]\(([^)#]+)\)", step.rpartition("| ")[2])
        assert linked, f"no code for {step}"
        assert all((PAGE.parent / path).exists() for path in linked)
