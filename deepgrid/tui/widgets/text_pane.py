"""A text of any length that wraps at words, such as the details of a job."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rich.text import Text
from textual.strip import Strip

from deepgrid.tui.widgets.scroller import CONSOLE, DIM, Scroller, plain_strip


@dataclass(frozen=True)
class Line:
    """A line of text. When it is too long, its rows after the first one are indented."""

    text: Text
    indent: int = 0

    def rows(self, width: int) -> list[Text]:
        """Return the rows of the line at this width."""
        if self.text.cell_len <= width:
            return [self.text]
        if not self.indent or width - self.indent < 10:
            return list(self.text.wrap(CONSOLE, width))
        head, value = self.text.divide([self.indent])
        first, *others = value.wrap(CONSOLE, width - self.indent)
        return [head + first, *(Text(" " * self.indent) + row for row in others)]


class TextPane(Scroller):
    """Lines of text, wrapped at words. The last row says how many are below."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._lines: tuple[Line, ...] = ()
        self._rows: list[Text] = []
        self._wrapped_at = 0

    @property
    def row_count(self) -> int:
        return len(self._rows)

    def show(self, lines: Iterable[Line], *, stale: bool | None = None) -> None:
        """Replace the text. Its parts must be clean."""
        new = tuple(lines)
        if new == self._lines and self.size.width == self._wrapped_at and stale in (None, self.stale):
            return
        self._lines = new
        self._wrap()
        self.redraw(stale=stale)

    def resized(self) -> None:
        self._wrap()
        self.redraw()

    def _wrap(self) -> None:
        self._wrapped_at = self.size.width
        self._rows = [row for line in self._lines for row in line.rows(max(10, self._wrapped_at))]

    def strip(self, row: int, width: int) -> Strip:
        below = self.row_count - row
        if row == self.scroll_offset.y + self.size.height - 1 and below > 1:
            return plain_strip(f"-- {below} more lines --", DIM).crop(0, width)
        return Strip([part for part in self._rows[row].render(CONSOLE) if part.text]).crop(0, width)


class SideText(TextPane, can_focus=False):
    """A text next to the fields or the table that have the focus."""


def text_in_style(text: str, style: str) -> Text:
    """Return a text with a style of its part: rich forgets the style of a whole text without parts."""
    return Text(end="").append(text, style or None)


def pair(name: str, value: Text | str, style: str = "", indent: int = 12) -> Line:
    """Return a line `name   value`, which wraps below its value."""
    line = text_in_style(name.ljust(indent), "bold")
    line.append_text(value) if isinstance(value, Text) else line.append(value, style)
    return Line(line, indent)


def heading(text: str) -> Line:
    """Return a line that starts a section."""
    return Line(text_in_style(text, "bold underline"))


def plain_line(text: str, style: str = "", indent: int = 0) -> Line:
    """Return a line of one style. The text must be clean."""
    return Line(text_in_style(text, style), indent)
