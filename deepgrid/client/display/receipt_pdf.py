"""A receipt as PDF, drawn with matplotlib: the text of the receipt on A4 pages. The import takes a second."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator
from itertools import islice

import matplotlib as mpl
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

from deepgrid.client.display.receipt_text import receipt_text
from deepgrid.services.receipts import Contents

A4_INCHES = (8.27, 11.69)
LINES_PER_PAGE = 68
CHARACTERS = 100
NOTE = "This page cannot be verified. The JSON form carries the provider's signature: dps receipt verify FILE."


def receipt_pdf(contents: Contents) -> bytes:
    """Return the receipt as PDF. Its letters stay text, which can be searched and copied."""
    file, lines = io.BytesIO(), _wrap_lines(receipt_text(contents))
    about = {"Title": f"Receipt of job {contents.job_id}", "Creator": "deepgrid"}
    with mpl.rc_context({"pdf.fonttype": 42}), PdfPages(file, metadata=about) as pages:
        while page := list(islice(lines, LINES_PER_PAGE)):
            pages.savefig(_draw_page(page))
    return file.getvalue()


def _wrap_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        yield from textwrap.wrap(line, CHARACTERS, subsequent_indent=indent, drop_whitespace=False) or [""]


def _draw_page(lines: list[str]) -> Figure:
    """Return a page. `$` is no formula."""
    figure = Figure(figsize=A4_INCHES)
    page = figure.text(0.08, 0.95, "\n".join(lines), fontsize=7.5, linespacing=1.35, va="top", family="monospace")
    page.set_parse_math(False)
    figure.text(0.08, 0.03, NOTE, fontsize=6.5, color="0.4")
    return figure
