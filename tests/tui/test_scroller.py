"""Tables and texts send only changes, because lines over SSH may be slow."""

from __future__ import annotations

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from deepgrid.tui.widgets.scroller import changed_columns

BOLD = Style(bold=True)


def strip(*parts: str | Segment) -> Strip:
    return Strip([Segment(part) if isinstance(part, str) else part for part in parts])


@pytest.mark.parametrize(
    ("before", "now", "columns"),
    [
        (strip("id ", "10s ", "end"), strip("id ", "10s ", "end"), (0, 0)),
        (strip("id ", "10s ", "end"), strip("id ", "11s ", "end"), (3, 7)),
        (strip("id ", "10s ", "end"), strip("ab ", "10s ", "end"), (0, 3)),
        (strip("id ", "10s ", "end"), strip("id ", "10s ", Segment("end", BOLD)), (7, 10)),
        (strip("id ", "10s ", "end"), strip("ab ", "10s ", "END"), (0, 10)),
        (strip("grün ", "日本 "), strip("grün ", "日月 "), (5, 10)),
        (strip("a", "a", "b"), strip("a", "b", "b"), (1, 2)),
        (strip("aa", "b"), strip("aa", "", "b"), (0, 3)),  # equal at both ends, in other parts
        (strip("narrow"), strip("narrow", " and wide"), (0, 15)),
        (None, strip("new"), (0, 3)),
    ],
)
def test_changed_columns(before: Strip | None, now: Strip, columns: tuple[int, int]) -> None:
    assert changed_columns(before, now) == columns
