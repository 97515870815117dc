"""Small screens above another one: a yes or no, the keys, a choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from deepgrid.plain_text import plain
from deepgrid.tui.screens.frame import KeyBar, Plain
from deepgrid.tui.widgets.table import Cell, Column, Table
from deepgrid.tui.widgets.text_pane import Line, TextPane, pair

if TYPE_CHECKING:
    from textual.screen import Screen


class Question(ModalScreen[bool]):
    """A question at the bottom. Only `y` means yes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", "yes", show=False),
        Binding("n,enter,escape,q,ctrl+q", "dismiss(False)", "no", show=False),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self.question = question

    def compose(self) -> ComposeResult:
        yield Plain(plain(self.question), id="question")


class Pane(ModalScreen[None]):
    """A text above a screen, until a key closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,ctrl+q,enter,l", "dismiss", "close", show=False)]

    def __init__(self, title: str, lines: Sequence[Line]) -> None:
        super().__init__()
        self._title_text = title
        self._lines = lines

    def compose(self) -> ComposeResult:
        yield Plain(plain(self._title_text), id="head")
        yield TextPane(id="pane")
        yield KeyBar("q close", id="keys")

    def on_mount(self) -> None:
        self.show(self._lines)

    def show(self, lines: Sequence[Line]) -> None:
        self.query_one(TextPane).show(lines)


class KeysScreen(Pane):
    """All keys of a screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark", "dismiss", "close", show=False)]

    def __init__(self, screen: Screen[None]) -> None:
        super().__init__("Keys", [*keys_of(screen)])


NAMES = {"question_mark": "?", "colon": ":", "slash": "/", "pageup": "pgup", "pagedown": "pgdn", "escape": "esc"}


def keys_of(screen: Screen[None]) -> list[Line]:
    """Return one line per action: its keys and its effect.

    Actions of the screen come first, then actions of its parts.
    """
    by_action: dict[str, tuple[list[str], str]] = {}
    active = sorted(screen.active_bindings.items(), key=lambda entry: entry[1].node is not screen)
    for key, (_, binding, _, _) in active:
        if binding.description:
            by_action.setdefault(binding.action, ([], binding.description))[0].append(NAMES.get(key, key))
    return [pair(" ".join(keys), Text(words), indent=20) for keys, words in by_action.values()]


class Choice(ModalScreen[str | None]):
    """A choice of one of several names, each with a description."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "choose", "choose", show=False),
        Binding("escape,q,ctrl+q", "dismiss", "close", show=False),
    ]

    def __init__(self, title: str, options: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._title_text = title
        self._options = options

    def compose(self) -> ComposeResult:
        yield Plain(self._title_text, id="head")
        columns = [Column("name", 14), Column("what it shows")]
        yield Table(columns, lambda row: [Cell(part) for part in self._options[row]], id="choice")
        yield KeyBar("enter choose   q close", id="keys")

    def on_mount(self) -> None:
        self.query_one(Table).show(len(self._options))

    def action_choose(self) -> None:
        if self._options:
            self.dismiss(self._options[self.query_one(Table).cursor][0])
