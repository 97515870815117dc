"""A screen of one table that is read as a whole: when it opens, and again by a key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widget import Widget

from deepgrid.tui.screens.frame import GridScreen
from deepgrid.tui.widgets.table import Cell, Column, Table


class ListScreen(GridScreen):
    """Reads its rows by `read`, and shows them by `cells`."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+r", "read", "read again", show=False)]
    COLUMNS: ClassVar[Sequence[Column]] = ()

    def body(self) -> Iterable[Widget]:
        yield Table(self.COLUMNS, self.cells, id="body")

    def prepare(self) -> None:
        self.query_one(Table).focus()
        self.action_read()

    def action_read(self) -> None:
        self.run_worker(self.read(), group="list", exclusive=True)

    async def read(self) -> None:
        """Read the rows, and draw them."""
        raise NotImplementedError

    def cells(self, row: int) -> Sequence[Cell]:
        """Return the cells of a row."""
        raise NotImplementedError
