"""A file that the user edits elsewhere: when it changed, and its beginning."""

from __future__ import annotations

from pathlib import Path

MOST_SHOWN = 256 * 1024


def stamp_of(path: Path) -> object:
    """Return a value that changes when the file does."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def text_of(path: Path) -> str:
    """Return the beginning of a file; empty if it cannot be read."""
    try:
        if not path.is_file():
            return ""
        with path.open("rb") as file:
            return file.read(MOST_SHOWN).decode(errors="replace")
    except (OSError, ValueError):
        return ""
