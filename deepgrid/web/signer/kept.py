"""What the page keeps on this device: drafts, files, choices. Its origin, with its storage, is new at each start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from deepgrid.private_files import replace_file

MOST_BYTES = 8 * 1024 * 1024


class Kept:
    """Texts by name, in a file that only its owner can read."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def all(self) -> dict[str, str]:
        """Everything that is kept; nothing if the file is missing or damaged."""
        try:
            return _texts(json.loads(self._file.read_bytes()))
        except (OSError, ValueError):
            return {}

    def change(self, changes: dict[str, Any]) -> None:
        """Keep these texts too, and forget names with None. Raises ValueError if that is too much, and OSError."""
        kept = self.all() | _texts(changes)
        content = json.dumps({name: text for name, text in kept.items() if changes.get(name, "") is not None}).encode()
        if len(content) > MOST_BYTES:
            raise ValueError("too much is kept")
        replace_file(self._file, content)


def _texts(named: Any) -> dict[str, str]:
    """Those values that are texts. Raises ValueError if these are no named values."""
    if not isinstance(named, dict):
        raise ValueError("these are no named values")
    return {name: text for name, text in named.items() if isinstance(text, str)}
