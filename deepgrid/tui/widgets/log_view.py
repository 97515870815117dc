"""A job's output: only visible lines are coloured and cut, so that any number of lines may arrive per second."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.message import Message
from textual.strip import Strip

from deepgrid.client.display.text import COLOUR
from deepgrid.tui.widgets.scroller import CONSOLE, DIM, Scroller

MOST_LINES = 100_000
DROPPED_AT_ONCE = 20_000
MATCH = Style(reverse=True)
TAB = 8


class LogView(Scroller):
    """Lines of a log. It follows the end until the user scrolls up, and again after `G`.

    Attributes:
        lines: The newest lines, with their colours.
        dropped: Number of older lines that are no longer kept.
        follows: Whether the newest line stays visible.
        wraps: Whether long lines take several rows.
        timed: Whether each line starts with the time of its arrival.
    """

    class AtTop(Message):
        """The user has jumped to the first line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.lines: list[str] = []
        self.dropped = 0
        self.follows = True
        self.wraps = True
        self.timed = False
        self._arrived: list[float] = []
        self._starts: list[int] = []  # first row of each line, when lines wrap
        self._rows = 0
        self._needle = ""
        self._found = -1  # line of the last match
        self._left = 0  # columns that are hidden, when lines do not wrap

    # -- content -----------------------------------------------------------------------------

    def add(self, lines: Sequence[str], arrived_s: float) -> None:
        """Take over lines. They are drawn by the next `draw`."""
        for line in lines:
            self.lines.append(line)
            self._arrived.append(arrived_s)
            self._starts.append(self._rows)
            self._rows += self._rows_of(line)
        if len(self.lines) > MOST_LINES:
            self.dropped += DROPPED_AT_ONCE
            del self.lines[:DROPPED_AT_ONCE], self._arrived[:DROPPED_AT_ONCE]
            self._measure()

    def clear(self) -> None:
        """Forget all lines, because the job starts again."""
        self.lines, self._arrived, self.dropped = [], [], 0
        self._measure()

    def draw(self) -> None:
        """Show what was added."""
        self.redraw()
        if self.follows:
            self.scroll_to(y=max(0, self.row_count - self.page_rows), animate=False, immediate=True, force=True)

    def _measure(self) -> None:
        self._starts, self._rows = [], 0
        for line in self.lines:
            self._starts.append(self._rows)
            self._rows += self._rows_of(line)

    def _rows_of(self, line: str) -> int:
        if not self.wraps:
            return 1
        if "\x1b" in line:
            line = COLOUR.sub("", line)
        if "\t" in line:
            line = line.expandtabs(TAB)
        width = len(line) if line.isascii() else cell_len(line)
        return max(1, -(-width // self._text_width))

    @property
    def _text_width(self) -> int:
        return max(10, self.size.width - (9 if self.timed else 0))

    @property
    def row_count(self) -> int:
        return self._rows

    @property
    def top_line(self) -> int:
        """Index of the first visible line."""
        return self._line_at(self.scroll_offset.y)

    def _line_at(self, row: int) -> int:
        return max(0, bisect_right(self._starts, row) - 1)

    # -- switches ----------------------------------------------------------------------------

    def switch(self, *, wraps: bool | None = None, timed: bool | None = None) -> None:
        """Change how lines are shown; the first visible line stays."""
        top = self.top_line
        self.wraps = self.wraps if wraps is None else wraps
        self.timed = self.timed if timed is None else timed
        self._measure()
        self.go_to(top)

    def go_to(self, line: int) -> None:
        """Make this line the first visible one."""
        self.redraw()
        if self._starts:
            row = self._starts[min(line, len(self._starts) - 1)]
            self.scroll_to(y=row, animate=False, immediate=True, force=True)
        if self.follows:
            self.draw()

    def resized(self) -> None:
        top = self.top_line
        self._measure()
        self.go_to(top)

    def move(self, rows: int) -> None:
        last = max(0, self.row_count - self.page_rows)
        target = max(0, min(self.scroll_offset.y + rows, last))
        self.follows = target >= last and rows > 0
        self.scroll_to(y=target, animate=False, immediate=True, force=True)

    def action_jump(self, end: bool) -> None:
        super().action_jump(end)
        if not end:
            self.post_message(self.AtTop())

    def aside(self, columns: int) -> None:
        """Move to the side, when lines do not wrap."""
        if not self.wraps:
            self._left = max(0, self._left + columns)
            self.redraw()

    # -- search ------------------------------------------------------------------------------

    def search(self, needle: str, *, backwards: bool = False, here: bool = False) -> bool:
        """Go to the next line that contains `needle`, in either case of letters. Returns whether there is one."""
        self._needle = needle.lower()
        self.redraw()
        found = self._find(backwards, here) if self._needle else None
        if found is None:
            return False
        self.follows = False
        self._found = found
        self.go_to(max(0, found - self.page_rows // 2) if not self.wraps else found)
        return True

    def _find(self, backwards: bool, here: bool) -> int | None:
        count = len(self.lines)
        last = self.page_rows + self.top_line
        start = self._found if self.top_line <= self._found < last else self.top_line - (0 if backwards else 1)
        start = self.top_line - 1 if here else start
        step = -1 if backwards else 1
        for distance in range(1, count + 1):
            at = (start + step * distance) % count
            if self._needle in COLOUR.sub("", self.lines[at]).lower():
                return at
        return None

    # -- drawing -----------------------------------------------------------------------------

    def strip(self, row: int, width: int) -> Strip:
        at = self._line_at(row)
        part = row - self._starts[at]
        text = self._text(at)
        shown = self._text_width
        left = part * shown if self.wraps else self._left
        body = Strip([one for one in text.render(CONSOLE) if one.text]).crop(left, left + shown)
        if not self.timed:
            return body
        stamp = time.strftime("%H:%M:%S ", time.localtime(self._arrived[at])) if part == 0 else " " * 9
        return Strip([Segment(stamp, DIM), *body])

    def _text(self, at: int) -> Text:
        text = Text.from_ansi(self.lines[at].expandtabs(TAB))
        text.end = ""
        if self._needle:
            plain, length = text.plain.lower(), len(self._needle)
            found = plain.find(self._needle)
            while found >= 0:
                text.stylize(MATCH, found, found + length)
                found = plain.find(self._needle, found + length)
        return text
