"""Markdown tables of the generated pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. A line end or a bar in a cell does not end the cell."""
    lines = [_line(head), _line(["---"] * len(head))]
    return "\n".join(lines + [_line([_cell(text) for text in row]) for row in rows])


def code(text: object) -> str:
    """Return the text as inline code, or nothing."""
    return f"`{text}`" if text not in ("", None) else ""


def prose(text: str) -> str:
    """Return text of the code as Markdown in one line. Everything except inline code is escaped."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else _escape(part) for part in parts)


def _escape(text: str) -> str:
    return re.sub(r"([\[\]*_])", r"\\\1", text).replace("<", "&lt;")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
