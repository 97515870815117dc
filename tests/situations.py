"""The tables of situations, of Slurm sites and of jobs: `.venv/bin/python -m tests.situations` writes their pages.

A row is a marker at the test that shows it, in any test module:

    @pytest.mark.situation("nodes", "all nodes are drained", "the cluster claims nothing, and doctor says why")
    async def test_...

A parametrised case takes it as `pytest.param(..., marks=pytest.mark.situation(...))`. The arguments are plain strings:
the topic (of one of the PAGES), the situation, and what happens. The markers are read from the text of the modules, so
that no test module is imported. Write the pages again after a change.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent
REFERENCE = TESTS.parent / "docs" / "reference"
MARKER = "situation"


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the docs: its text before the tables, and the titles of its topics."""

    path: Path
    head: str
    topics: dict[str, str]


SITES = Page(
    REFERENCE / "slurm-sites.md",
    """# Slurm sites

What sites do to a supervisor, and what it does then. Each row is a test, mostly on a real Slurm or a real sshd.
`tests/situations.py` generates this page from the markers of the tests.
""",
    {
        "versions": "Versions of Slurm",
        "nodes": "Nodes, and what they offer",
        "submission": "Submission",
        "pending": "Jobs that wait",
        "ends": "How jobs end",
        "environment": "The login account and its environment",
        "ssh": "SSH",
        "doctor": "What doctor finds",
        "features": "Containers, storage and networks",
        "combinations": "Combinations of these",
    },
)
JOBS = Page(
    REFERENCE / "job-situations.md",
    """# Situations of jobs

What authors of workflows do, and what happens then. Each row is a test, mostly on a real Slurm.
`tests/situations.py` generates this page from the markers of the tests.
""",
    {
        "steps": "Programs and tasks of steps",
        "processes": "Processes and signals",
        "variables": "Variables",
        "input": "Input",
        "output": "Output",
    },
)
PAGES = (SITES, JOBS)


@dataclass(frozen=True, slots=True, order=True)
class Situation:
    """A row of the table, and the test that shows it (`tests/slurm/test_nodes.py::test_name`)."""

    topic: str
    situation: str
    happens: str
    test: str


def situations() -> list[Situation]:
    """Return the rows of all test modules, ordered."""
    files = (file for file in TESTS.rglob("test_*.py") if f"mark.{MARKER}(" in file.read_text())
    return sorted({row for file in files for row in _of(file)})


def text_of(page: Page) -> str:
    """Return the text of a page, with one table per topic."""
    rows = situations()
    parts = [page.head]
    for topic, title in page.topics.items():
        mine = [row for row in rows if row.topic == topic]
        if mine:
            lines = [f"## {title}", "", "| situation | what happens | test |", "|---|---|---|"]
            lines += [f"| {row.situation} | {row.happens} | `{row.test}` |" for row in mine]
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _of(file: Path) -> Iterator[Situation]:
    """Yield the rows of a module. Markers outside of functions belong to the whole module."""
    name = f"{file.relative_to(TESTS.parent)}"
    tree = ast.parse(file.read_text())
    for statement in tree.body:
        is_test = isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
        where = f"{name}::{statement.name}" if is_test else name
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == MARKER:
                topic, situation, happens = (ast.literal_eval(argument) for argument in node.args)
                yield Situation(topic, situation, happens, where)


if __name__ == "__main__":
    for page in PAGES:
        page.path.write_text(text_of(page))
