"""Sessions at a terminal in the pages: each command, with the lines that the page shows below it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.docs.blocks import Block, blocks

LEFT_OUT = "..."


def sessions(page: str) -> list[Block]:
    """Return the page's blocks that show a session."""
    return [block for block in blocks() if block.page == page and block.kind == "console"]


def typed(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Yield each command of a session, with the lines below it."""
    for part in re.split(r"^\$ ", block.text, flags=re.M)[1:]:
        command, *shown = part.splitlines()
        yield command, shown
