"""The files of examples/, each with its source."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
LANGUAGES = {".yaml": "yaml", ".py": "python", ".ipynb": "python"}


@cache
def paths() -> tuple[str, ...]:
    """Return paths from the root of the repository, in alphabetical order."""
    found = [path for path in (ROOT / "examples").rglob("*") if path.suffix in LANGUAGES]
    return tuple(sorted(str(path.relative_to(ROOT)) for path in found))


def anchor(path: str) -> str:
    """Return the anchor of a file, or of the first file in a folder."""
    return path.removeprefix("examples/").replace("/", "").replace(".", "").lower()


def listing() -> str:
    """Return a heading and the source of each file."""
    return "\n\n".join(f"## {path.removeprefix('examples/')}\n\n{source(path)}" for path in paths())


def source(path: str) -> str:
    """Return the source of a file as a code block. For a notebook, return its code cells."""
    text = (ROOT / path).read_text()
    if path.endswith(".ipynb"):
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells) + "\n"
    return f"```{LANGUAGES[Path(path).suffix]}\n{text}```"
