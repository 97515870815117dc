"""Help texts in narrow terminals: each option on a line of its own, whole, with its text below.

The tables that typer draws cut the names of options there.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from typing import Any

import typer

WIDE = 80  # columns that the tables need,
PER_LETTER = 2.5  # or this many per letter of the longest name
NARROWEST = 20
INDENT = 6


class _NarrowFormatter(typer.Context.formatter_class):  # type: ignore[misc, valid-type]
    """Writes the text of an option below its name."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__(width=max(NARROWEST, _columns()))

    def write_dl(self, rows: Sequence[tuple[str, str]], *_: int, **__: int) -> None:
        """Write names with their texts."""
        for name, text in rows:
            self.write(_wrap(name, self.current_indent, self.width))
            self.write(_wrap(text, INDENT, self.width))


class _NarrowContext(typer.Context):
    formatter_class = _NarrowFormatter


def fit_help(command: Any) -> Any:
    """Return the command, with verbs whose help fits into this terminal."""
    for verb in getattr(command, "commands", {}).values():
        fit_help(verb)
    if not hasattr(command, "commands") and _columns() < _needed_width(command):  # groups have few options, which fit
        command.rich_markup_mode = None
        command.context_class = _NarrowContext
    return command


def _needed_width(verb: Any) -> float:
    names = [",".join([*option.opts, *option.secondary_opts]) for option in verb.params]
    return max(WIDE, PER_LETTER * max(map(len, names), default=0))


def _columns() -> int:
    return shutil.get_terminal_size().columns


def _wrap(text: str, indent: int, width: int) -> str:
    filled = textwrap.wrap(text, width - indent, break_on_hyphens=False, break_long_words=False)
    return "".join(f"{' ' * indent}{line}\n" for line in filled)
