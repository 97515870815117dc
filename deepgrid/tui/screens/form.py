"""Shared by forms: fields that `enter` walks through, their meaning below, and a confirmation."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.suggester import Suggester
from textual.widget import Widget
from textual.widgets import Input, Static

from deepgrid.errors import InputError
from deepgrid.tui.screens.frame import GridScreen
from deepgrid.tui.screens.questions import Question
from deepgrid.tui.widgets.text_pane import Line, SideText, plain_line

Confirmation = tuple[str, str, Callable[[], Awaitable[str]]]
"""A question, what is sent in words, and the transaction."""

MOST_ENTRIES = 2000  # of a folder, which are looked at to complete a path
WORKFLOWS = (".yaml", ".yml")


class Field(Horizontal):
    """A label with an input. The input has the id of the field."""

    def __init__(self, name: str, label: str, placeholder: str = "", value: str = "", paths: bool = False) -> None:
        super().__init__(classes="field")
        self.label = label
        suggester = PathSuggester() if paths else None
        self.input = Input(value, placeholder, id=name, suggester=suggester, select_on_focus=False)
        self.input.cursor_blink = False  # costs bytes on slow lines, for nothing

    def compose(self) -> ComposeResult:
        yield Static(self.label, classes="label", markup=False)
        yield self.input

    def on_descendant_focus(self) -> None:
        self.add_class("-focused")  # Textual's `:focus-within` does not reach the label

    def on_descendant_blur(self) -> None:
        self.remove_class("-focused")


class Form(GridScreen):
    """A form. `enter` in its last field asks for a confirmation, and then sends."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+n,down", "app.focus_next", "next field", show=False, priority=True),
        Binding("ctrl+p,up", "app.focus_previous", "previous field", show=False, priority=True),
        Binding("tab", "app.focus_next", "next field", show=False),
        Binding("shift+tab", "app.focus_previous", "previous field", show=False),
        Binding("pageup", "read(-1)", "text up", show=False),
        Binding("pagedown", "read(1)", "text down", show=False),
    ]
    KEYS = "enter next field, at the last one: go on   ctrl+p previous   esc leave"

    def __init__(self) -> None:
        super().__init__()
        self.sending = False

    def fields(self) -> Sequence[Field]:
        """Return the fields, from the top."""
        raise NotImplementedError

    def body(self) -> Iterable[Widget]:
        with Vertical(id="body"):
            yield from self.fields()
            yield SideText(id="meaning")

    def prepare(self) -> None:
        super().prepare()
        self.instead("")
        self.query(Input).first().focus()
        self.update()

    def value(self, name: str) -> str:
        """Return the typed value of a field."""
        return self.query_one(f"#{name}", Input).value.strip()

    def update(self) -> None:
        """Show what the form means now."""
        try:
            lines = self.meaning()
        except InputError as error:
            lines = [plain_line(str(error), "red")]
        self.query_one("#meaning", SideText).show([plain_line(""), *lines], stale=self.stale)

    def meaning(self) -> list[Line]:
        """Return the meaning of the form in words. Raises InputError for wrong fields."""
        return []

    def confirmation(self) -> Confirmation:
        """Return the question, the words for what is sent, and the transaction. Raises InputError."""
        raise NotImplementedError

    def draw(self) -> None:
        super().draw()
        if self.query("#meaning"):
            self.update()

    @on(Input.Changed)
    def _changed(self) -> None:
        self.update()

    @on(Input.Submitted)
    def _next(self, event: Input.Submitted) -> None:
        if event.input is self.query(Input).last():
            self.go_on()
        else:
            self.focus_next()

    def go_on(self) -> None:
        """Ask for the confirmation."""
        if self.sending:
            return
        try:
            question, what, send = self.confirmation()
        except InputError as error:
            self.tell(str(error), wrong=True)
            return
        self.tell("")
        self.app.push_screen(Question(question), lambda yes: self._send(what, send) if yes else None)

    def _send(self, what: str, send: Callable[[], Awaitable[str]]) -> None:
        self.sending = True
        self.grid_app.send(what, send, self._sent)

    def _sent(self, words: str, done: bool) -> None:
        self.sending = False
        if done and self.is_current:
            self.app.pop_screen()
        self.grid_app.tell(words, wrong=not done)

    def action_read(self, direction: int) -> None:
        self.query_one("#meaning", SideText).action_page(direction)

    def action_leave(self) -> None:
        if self.sending:
            self.grid_app.leave(self.app.pop_screen)
        else:
            self.app.pop_screen()

    def left_after(self, spent: Decimal) -> Decimal:
        """Return the credits that are left after spending.

        Raises InputError if there are too few, or if they are unknown.
        """
        account = self.live.account if self.live else None
        if account is None:
            raise InputError("Your balance is not known yet.")
        if spent > account.credits:
            raise InputError(f"You have {account.credits:f} credits.", next_step="Give less.")
        return account.credits - spent


class PathSuggester(Suggester):
    """Completes a path by the first file that fits: folders and workflow files before others."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """Return the completed path; None if nothing fits."""
        return next(iter(completions(value)), None) if value else None


def completions(value: str) -> Iterator[str]:
    """Yield the paths that start with `value`, in the order in which they are offered."""
    folder, _, start = value.rpartition("/")
    where = Path(f"{folder}/" if "/" in value else ".").expanduser()
    try:
        with os.scandir(where) as entries:
            found = sorted(
                (not one.is_dir() and not one.name.endswith(WORKFLOWS), one.name + ("/" if one.is_dir() else ""))
                for _, one in zip(range(MOST_ENTRIES), entries, strict=False)
                if one.name.startswith(start) and (start or not one.name.startswith(".")) and one.name.isprintable()
            )
    except OSError:
        return
    for _, name in found:
        yield (f"{folder}/" if "/" in value else "") + name
