"""Atomic writing of small JSON files: a crash leaves the old file or the new one, never a part."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any


def write_json(where: Path, value: Any, mode: int = 0o644) -> None:
    """Replace the file at `where` atomically, by default readable by all. Makes a missing folder."""
    where.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=where.parent, prefix=f".{where.name}.", delete=False) as file:
        try:
            json.dump(value, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, mode)
            os.replace(file.name, where)
        except BaseException:
            os.unlink(file.name)
            raise
