"""A usage report as a Markdown page. Names and errors in it are strangers' text: they stay text."""

from __future__ import annotations

import base64
import re

from deepgrid.billing.usage.usage_figures import UsageReport
from deepgrid.billing.usage.usage_tables import Table, remarks, tables
from deepgrid.plain_text import visible

# Punctuation that means something in Markdown or HTML, or makes a link of an address. A point between digits does not.
_MEANS = re.compile(r"[!-$&-*/:-@\[-`{-~]|\.(?!\d)|(?<!\d)\.|^[-+]|(?<=\s)[-+](?=\s)")


def page(report: UsageReport, picture: bytes) -> str:
    """Return the report as Markdown, with the plot inside. Its one sentence is the artifact's description."""
    parts = [
        f"# Usage of {escape_markdown(report.name)}",
        *(escape_markdown(one) for one in remarks(report)),
        f"![plot](data:image/png;base64,{base64.b64encode(picture).decode()})",
    ]
    for one in tables(report):
        parts += [f"## {one.title}", _markdown(one)]
    return "\n\n".join(parts) + "\n"


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is, on one line, with marks for characters that one cannot see."""
    return _MEANS.sub(lambda match: f"\\{match[0]}", visible(text))


def _markdown(table: Table) -> str:
    if not table.rows:
        return "None."
    heads = [column.removeprefix(">") for column in table.columns]
    lines = [heads, ["--:" if column.startswith(">") else "---" for column in table.columns]]
    lines += [[escape_markdown(cell) for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
