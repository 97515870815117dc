"""A line of a form: a label and what is typed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.suggester import Suggester
from textual.widgets import Input, Static

MOST_ENTRIES = 2000
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


class PathSuggester(Suggester):
    """Completes a path by the first file that fits: folders and workflow files before others."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)

    async def get_suggestion(self, value: str) -> str | None:
        """The completed path; None if nothing fits."""
        return next(iter(completions(value)), None) if value else None


def completions(value: str) -> Iterator[str]:
    """Paths that start with `value`, in the order in which they are offered."""
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
