"""Creates files and folders that no other account may read, with mode 0600 and 0700 from the start."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from deepgrid.private_files import create_file


def make_private_folder(path: Path) -> Path:
    """Create the folder `path`. If it exists, remove the rights of other accounts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    path.chmod(0o700)
    return path


def read_or_create(file: Path, content: Callable[[], str]) -> str:
    """Return the text of `file`. If it is missing, create it with `content()`. Concurrent calls get equal texts."""
    if not file.exists():
        with suppress(FileExistsError):
            create_file(file, content().encode())
    return file.read_text()
