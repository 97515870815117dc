"""The contract's matrix, Python's table and the diagram in the documentation have the same edges."""

from __future__ import annotations

import importlib.resources
import json
import re
from pathlib import Path

from deepgrid.lifecycle.states import EDGES, JobStatus, may_move

ROOT = Path(__file__).parents[2]


MATRIX = json.loads((importlib.resources.files("contracts") / "matrix.json").read_text())


def test_states_are_numbered_as_on_chain() -> None:
    assert MATRIX["states"] == [status.name for status in sorted(JobStatus)]


def test_edges_are_the_same() -> None:
    edges = {JobStatus[name]: frozenset(JobStatus[to] for to in targets) for name, targets in MATRIX["edges"].items()}
    assert edges == EDGES


def test_cold_states_have_no_way_out_and_hot_ones_do() -> None:
    for status in JobStatus:
        assert status.cold == (not any(may_move(status, following) for following in JobStatus))


def test_the_documented_diagram_shows_every_edge_once() -> None:
    text = (ROOT / "docs" / "explanation" / "contracts.md").read_text()
    drawn = re.findall(r"^    ([A-Z_]+) --> ([A-Z_]+):", text, re.MULTILINE)
    assert sorted(drawn) == sorted((status.name, to.name) for status, targets in EDGES.items() for to in targets)


def test_the_documented_diagram_names_the_calls_that_make_each_edge() -> None:
    text = (ROOT / "docs" / "explanation" / "contracts.md").read_text()
    drawn = {
        (before, after): set(calls.split(", "))
        for before, after, calls in re.findall(r"^    ([A-Z_]+) --> ([A-Z_]+): (.+)$", text, re.MULTILINE)
    }
    made: dict[tuple[str, str], set[str]] = {}
    for move in MATRIX["moves"]:
        found = re.fullmatch(r"(\w+) > (\w+): (\w+) by \w+,[ a-z]+", move)
        assert found is not None, move
        made.setdefault((found[1], found[2]), set()).add(found[3])
    assert drawn == made
