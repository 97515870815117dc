"""The commands of a page, section by section, as a reader types them."""

from __future__ import annotations

import re

from tests.docs.blocks import blocks
from tests.docs.pages import ROOT


def commands(page: str, section: str) -> list[str]:
    """Return the blocks of code below a heading of a page, in their order."""
    lines = (ROOT / page).read_text().splitlines()
    first = lines.index(f"## {section}")
    last = next((n for n in range(first + 1, len(lines)) if re.match("#{1,2} ", lines[n])), len(lines))
    return [block.script for block in blocks() if block.page == page and first < block.line <= last]
