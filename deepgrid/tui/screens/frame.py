"""The frame of every screen: a head line, the body or a sentence instead, a line of news, a line of keys."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input, Static

from deepgrid.plain_text import plain

if TYPE_CHECKING:
    from deepgrid.tui.grid_app import GridApp
    from deepgrid.tui.live_data import LiveData

REVERSE = Style(reverse=True)
OPENS_A_FIELD = ("filter", "ask")


class Plain(Static):
    """A text that is never markup. It is drawn again only when it changes."""

    def __init__(self, text: str = "", **options: str) -> None:
        super().__init__(text, markup=False, **options)  # type: ignore[arg-type]
        self._shown = Content(text)

    def say(self, text: str | Content) -> None:
        """Show this text; of a string, what controls a terminal is removed."""
        shown = Content(plain(text, keep="\n")) if isinstance(text, str) else text
        if not shown.is_same(self._shown):
            self._shown = shown
            self.update(shown)


class KeyBar(Plain):
    """A line of keys, reversed over the whole width."""

    def render_line(self, y: int) -> Strip:
        return Strip([Segment(super().render_line(y).text.ljust(self.size.width), REVERSE)])


class GridScreen(Screen[None], inherit_bindings=False):
    """A screen with head, body, news and keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,ctrl+q", "leave", "back", show=False)]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide"), (180, "-huge")]  # noqa: RUF012 - Textual declares it for instances
    HEAD = ""
    KEYS = ""

    def __init__(self) -> None:
        super().__init__()
        self._told = ""
        self._wrong = False

    @property
    def grid_app(self) -> GridApp:
        return cast("GridApp", self.app)

    @property
    def live(self) -> LiveData | None:
        return self.grid_app.live

    def compose(self) -> ComposeResult:
        yield Plain(self.HEAD, id="head")
        yield from self.body()
        yield Plain(id="instead")
        yield from self.below()
        yield Plain(id="news")
        yield KeyBar(self.KEYS, id="keys")

    def body(self) -> Iterable[Widget]:
        """Return the widgets between head and news. The first one is hidden while there is a sentence instead."""
        return ()

    def below(self) -> Iterable[Widget]:
        """Return the widgets between the body and the news."""
        return ()

    def on_mount(self) -> None:
        self.instead("Connecting to the grid ...")
        self.prepare()
        self.show_news()

    def prepare(self) -> None:
        """Set up the body, when it is mounted. (Textual calls `on_mount` of each class, so they need another name.)"""

    def instead(self, sentence: str) -> None:
        """Show a sentence instead of the body; an empty one shows the body."""
        self.query_one("#instead", Plain).say(sentence)
        self.set_class(bool(sentence), "-instead")

    def head(self, text: str | Content) -> None:
        self.query_one("#head", Plain).say(text)

    @property
    def stale(self) -> bool:
        """Whether the grid does not answer, so that what is shown may be out of date."""
        return self.live is not None and bool(self.live.outage)

    @property
    def alive(self) -> bool:
        """Whether the screen can be drawn: it was not closed while something was read."""
        return self.is_attached and bool(self.query("#news"))

    def show_news(self) -> None:
        """Draw what changed. Called after each look at the grid, and after own reads."""
        if self.alive:
            self.draw()

    def draw(self) -> None:
        """Draw the screen with what is known now."""
        self._draw_news()

    def _draw_news(self) -> None:
        live, words, wrong = self.live, self._told, self._wrong
        if self.grid_app.in_flight:
            words, wrong = f"Sending: {', '.join(self.grid_app.in_flight.values())} ...", False
        elif live is not None and live.outage:
            since = time.strftime("%H:%M", time.localtime(live.outage_since))
            words, wrong = f"No answer since {since}, trying again: {live.outage}", True
        news = self.query_one("#news", Plain)
        news.say(words)
        news.set_class(wrong, "-wrong")

    def tell(self, words: str, *, wrong: bool = False) -> None:
        """Show a sentence at the bottom until the next one."""
        self._told, self._wrong = words, wrong
        if self.alive:
            self._draw_news()

    def missing(self, what: str) -> str:
        """Return why there is nothing to show yet: it is being read, or cannot be."""
        if self.grid_app.problem:
            return self.grid_app.problem
        if self.stale and self.live is not None:
            return f"{what} cannot be read: {self.live.outage}\nTrying again; q leaves."
        return f"Reading {what[0].lower()}{what[1:]} ..." if self.live else "Connecting to the grid ..."

    def ask_in(self, field: Input) -> None:
        """Show a field and give it the focus at once. The keys that were typed ahead are for the field."""
        field.disabled, field.display = False, True
        self.set_focus(field)  # `Widget.focus` would wait for its turn, after these keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action may run. While the user types, keys that open a field are letters."""
        return not (action in OPENS_A_FIELD and isinstance(self.focused, Input))

    def action_leave(self) -> None:
        self.app.pop_screen()
