"""What screens may ask of the app."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from deepgrid.tui.feed import Feed
from deepgrid.tui.shape import Shape

if TYPE_CHECKING:
    from textual.screen import Screen

    from deepgrid.client.grid import AsyncGrid
    from deepgrid.client.job import AsyncJob


class Host(Protocol):
    """The app, as screens see it. `GridApp` describes the attributes."""

    feed: Feed | None
    in_flight: dict[object, str]
    files: dict[int, Path]
    submitted: int | None
    shape: Shape
    problem: str
    read_only: bool
    now: Callable[[], float]

    @property
    def grid(self) -> AsyncGrid: ...

    def send(self, what: str, send: Callable[[], Awaitable[str]], then: Callable[[str, bool], None]) -> None: ...

    def leave(self, go: Callable[[], object]) -> None: ...

    def show_news(self) -> None: ...

    def tell(self, words: str, *, wrong: bool = False) -> None: ...

    def tell_outcome(self, words: str, done: bool) -> None: ...

    def open_screen(self, name: str, job: AsyncJob | None = None) -> None: ...

    def show_keys(self, screen: Screen[None]) -> None: ...
