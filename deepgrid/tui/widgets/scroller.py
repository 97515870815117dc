"""Base of tables and texts: they draw only visible rows, and move by the same keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

DIM = Style(dim=True)
CONSOLE = Console(width=80, color_system=None, markup=False, emoji=False, highlight=False)  # measures and wraps text

MOVES: list[BindingType] = [
    Binding("up,k", "move(-1)", "up", show=False),
    Binding("down,j", "move(1)", "down", show=False),
    Binding("pageup,b", "page(-1)", "page up", show=False),
    Binding("pagedown,f,space", "page(1)", "page down", show=False),
    Binding("ctrl+u,u", "half_page(-1)", "half a page up", show=False),
    Binding("ctrl+d,d", "half_page(1)", "half a page down", show=False),
    Binding("home,g", "jump(False)", "first", show=False),
    Binding("end,G", "jump(True)", "last", show=False),
]


class Scroller(ScrollView, can_focus=True, inherit_bindings=False):
    """Rows of text. Only visible ones are made. Subclasses have `row_count` and `strip`."""

    BINDINGS: ClassVar[list[BindingType]] = MOVES
    stale = False  # whether what is shown may be out of date; it is dimmed then

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._drawn: dict[int, Strip] = {}  # the last drawing, by line of the widget

    @property
    def row_count(self) -> int:
        raise NotImplementedError

    def strip(self, row: int, width: int) -> Strip:
        """Return a row as it is drawn."""
        raise NotImplementedError

    def move(self, rows: int) -> None:
        self.scroll_to(y=self.scroll_offset.y + rows, animate=False, immediate=True, force=True)

    @property
    def page_rows(self) -> int:
        return max(1, self.size.height)

    def redraw(self, *, stale: bool | None = None) -> None:
        """Draw what changed on the visible rows. Lines may be slow, so the rest is not sent again."""
        if stale is not None:
            self.stale = stale
        self.virtual_size = Size(self.size.width, self.row_count)
        for y in range(self.size.height):
            start, end = changed_columns(self._drawn.get(y), self.line(y))
            if start < end:
                self.refresh(Region(start, y, end - start, 1))

    def on_resize(self) -> None:
        self.resized()

    def resized(self) -> None:
        """Draw for the new size."""
        self.redraw()

    def render_line(self, y: int) -> Strip:
        """Return a visible row. Called by Textual."""
        self._drawn[y] = strip = self.line(y)
        return strip.simplify()  # fewer sequences

    def line(self, y: int) -> Strip:
        """Return the content of this line of the widget."""
        row, width = self.scroll_offset.y + y, self.size.width
        if row >= self.row_count:
            return Strip.blank(width)
        strip = self.strip(row, width).adjust_cell_length(width)
        return strip.apply_style(DIM) if self.stale else strip

    def action_move(self, rows: int) -> None:
        self.move(rows)

    def action_page(self, direction: int) -> None:
        self.move(direction * self.page_rows)

    def action_half_page(self, direction: int) -> None:
        self.move(direction * max(1, self.page_rows // 2))

    def action_jump(self, end: bool) -> None:
        self.move(self.row_count if end else -self.row_count)


def changed_columns(before: Strip | None, now: Strip) -> tuple[int, int]:
    """Return the first changed column, and the first column after all changes; equal if nothing changed."""
    width = now.cell_length
    if before is None or before.cell_length != width:
        return 0, width
    start, behind = _equal_columns(before, now), _equal_columns(reversed(list(before)), reversed(list(now)))
    return (start, width - behind) if start + behind < width else (0, 0 if before == now else width)


def _equal_columns(before: Iterable[Segment], now: Iterable[Segment]) -> int:
    """Return the width of the segments at the beginning that both share."""
    columns = 0
    for one, other in zip(before, now, strict=False):
        if one != other:
            break
        columns += other.cell_length
    return columns


def plain_strip(text: str, style: Style | None = None) -> Strip:
    """Return a row of one style. The text must be clean."""
    return Strip([Segment(text, style)])
