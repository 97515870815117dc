"""Storage of the page on this device: drafts, files, choices. Its origin, with its storage, is new at each start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from deepgrid.private_files import replace_file

MOST_BYTES = 8 * 1024 * 1024
FILE = "file:"  # begins the names of files of earlier jobs, which can be dropped


class PageStorage:
    """Texts by name, in a file that only its owner can read."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def all(self) -> dict[str, str]:
        """All texts; none if the file is missing or damaged. Raises OSError if it cannot be read."""
        try:
            return _texts(json.loads(self._file.read_bytes()))
        except (FileNotFoundError, ValueError):
            return {}

    def change(self, changes: dict[str, Any]) -> None:
        """Store these texts too, and forget names without a text. The oldest files make room if it is full.

        Raises ValueError if that is too much, and OSError.
        """
        added = _texts(changes)
        texts = {name: text for name, text in self.all().items() if name not in changes} | added
        sizes = {name: len(json.dumps({name: text})) for name, text in texts.items()}  # with separators and braces
        excess = sum(sizes.values()) - MOST_BYTES
        for name in sizes:  # oldest first
            if excess > 0 and name.startswith(FILE) and name not in added:
                excess -= sizes[name]
                del texts[name]
        if excess > 0:
            raise ValueError("too much is stored")
        replace_file(self._file, json.dumps(texts).encode())


def _texts(named: Any) -> dict[str, str]:
    """Those values that are texts. Raises ValueError if these are no named values."""
    if not isinstance(named, dict):
        raise ValueError("these are no named values")
    return {name: text for name, text in named.items() if isinstance(text, str)}
