"""A table of any length with a cursor. It asks for the cells of visible rows only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.segment import Segment
from rich.style import Style
from textual.message import Message
from textual.strip import Strip

from deepgrid.tui.widgets.scroller import Scroller
from deepgrid.tui.words import fit

CURSOR, HEADING, PLAIN = Style(reverse=True), Style(bold=True), Style()
GAP = "  "


@dataclass(frozen=True)
class Column:
    """A column. A width of 0 takes the rest of the line; `from_width` leaves it out on narrow screens."""

    title: str
    width: int = 0
    right: bool = False
    from_width: int = 0


@dataclass(frozen=True)
class Cell:
    """A text in a style."""

    text: str
    style: Style = PLAIN


class Table(Scroller):
    """A table with a heading and a cursor. `cells` returns the cells of a row, or None while they are read."""

    class Moved(Message):
        """The cursor is on another row, or other rows are visible."""

    def __init__(
        self, columns: Sequence[Column], cells: Callable[[int], Sequence[Cell] | None], **options: Any
    ) -> None:
        super().__init__(**options)
        self._columns = columns
        self._cells = cells
        self._count = 0
        self.cursor = 0

    @property
    def row_count(self) -> int:
        return self._count + 1  # the heading

    @property
    def page_rows(self) -> int:
        return max(1, self.size.height - 1)

    @property
    def visible_rows(self) -> range:
        """Numbers of the rows that are on the screen."""
        first = self.scroll_offset.y
        return range(first, min(self._count, first + self.page_rows))

    def show(self, count: int, cursor: int | None = None, *, stale: bool | None = None) -> None:
        """Draw the table, which has `count` rows now."""
        self._count = count
        self.cursor = min(self.cursor if cursor is None else cursor, max(0, count - 1))
        self.redraw(stale=stale)
        self._follow_cursor()

    def move(self, rows: int) -> None:
        before = self.cursor
        self.cursor = max(0, min(self.cursor + rows, self._count - 1))
        if self.cursor != before:
            self._follow_cursor()
            self.redraw()
            self.post_message(self.Moved())

    def _follow_cursor(self) -> None:
        first = self.scroll_offset.y
        if self.cursor < first:
            first = self.cursor
        elif self.cursor >= first + self.page_rows:
            first = self.cursor - self.page_rows + 1
        if first != self.scroll_offset.y:
            self.scroll_to(y=first, animate=False, immediate=True, force=True)

    def line(self, y: int) -> Strip:
        if y == 0:
            return self._line([Cell(column.title, HEADING) for column in self._columns], self.size.width, HEADING)
        return super().line(y - 1)

    def strip(self, row: int, width: int) -> Strip:
        if row >= self._count:
            return Strip.blank(width)
        cells = self._cells(row)
        marked = row == self.cursor
        if cells is None:
            cells = [Cell("...")] * len(self._columns)
        return self._line(cells, width, CURSOR if marked else PLAIN, marked=marked)

    def _line(self, cells: Sequence[Cell], width: int, style: Style, *, marked: bool = False) -> Strip:
        shown = [
            (column, cell) for column, cell in zip(self._columns, cells, strict=True) if width >= column.from_width
        ]
        fixed = sum(column.width for column, _ in shown) + len(GAP) * (len(shown) - 1)
        segments: list[Segment] = []
        for at, (column, cell) in enumerate(shown):
            size = column.width or max(1, width - fixed)
            text = (GAP if at else "") + fit(cell.text, size, right=column.right)
            segments.append(Segment(text, style if marked else style + cell.style))
        return Strip(segments).adjust_cell_length(width, style)
