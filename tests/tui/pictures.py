"""Pictures of screens for the documentation: SVG files that load nothing."""

from __future__ import annotations

import re
from pathlib import Path

from deepgrid.tui.grid_app import GridApp

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "terminal.md"
PICTURE_FOLDER = PAGE.with_suffix("")
FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.S)
COMMENT = re.compile(r"\s*<!--.*?-->", re.S)


def picture_of(app: GridApp) -> str:
    """Return the screen as SVG, in a font that every browser has."""
    text = COMMENT.sub("", FONT_FACE.sub("", app.export_screenshot(title="dps tui")))
    text = text.replace("Fira Code", "DejaVu Sans Mono, Menlo, Consolas")
    text = re.sub(r"terminal-\d+", "terminal", text)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()) + "\n"
