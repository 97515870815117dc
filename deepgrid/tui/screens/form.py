"""Shared by forms: fields that `enter` walks through, their meaning below, and a confirmation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from decimal import Decimal
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import Input

from deepgrid.errors import InputError
from deepgrid.tui.screens.frame import GridScreen
from deepgrid.tui.screens.questions import Question
from deepgrid.tui.widgets.field import Field
from deepgrid.tui.widgets.text_pane import Line, TextPane, plain_line

Confirmation = tuple[str, str, Callable[[], Awaitable[str]]]
"""A question, what is sent in words, and the transaction."""


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
        """The fields, from the top."""
        raise NotImplementedError

    def body(self) -> Iterable[Widget]:
        with Vertical(id="body"):
            yield from self.fields()
            yield TextPane(id="meaning")

    def prepare(self) -> None:
        for pane in self.query(TextPane):
            pane.can_focus = False
        super().prepare()
        self.instead("")
        self.query(Input).first().focus()
        self.update()

    def value(self, name: str) -> str:
        """What is typed in a field."""
        return self.query_one(f"#{name}", Input).value.strip()

    def update(self) -> None:
        """Show what the form means now."""
        try:
            lines = self.meaning()
        except InputError as error:
            lines = [plain_line(str(error), "red")]
        self.query_one("#meaning", TextPane).show([plain_line(""), *lines], stale=self.stale)

    def meaning(self) -> list[Line]:
        """What the form means, in words. Raises InputError for fields that are wrong."""
        return []

    def confirmation(self) -> Confirmation:
        """The question, what is sent in words, and the transaction. Raises InputError."""
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
        self.query_one("#meaning", TextPane).action_page(direction)

    def action_leave(self) -> None:
        if self.sending:
            self.grid_app.leave(self.app.pop_screen)
        else:
            self.app.pop_screen()

    def left_after(self, spent: Decimal) -> Decimal:
        """Credits that are left after spending. Raises InputError if there are too few, or if they are unknown."""
        account = self.feed.account if self.feed else None
        if account is None:
            raise InputError("Your balance is not known yet.")
        if spent > account.credits:
            raise InputError(f"You have {account.credits:f} credits.", next_step="Give less.")
        return account.credits - spent
