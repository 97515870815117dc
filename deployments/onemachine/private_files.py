"""Creates files and folders that no other account may read, with mode 0600 and 0700 from the start."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def make_private_folder(path: Path) -> Path:
    """Create the folder `path`. If it exists, remove the rights of other accounts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    path.chmod(0o700)
    return path


def read_or_create(file: Path, content: Callable[[], str]) -> str:
    """Return the text of `file`. If it is missing, create it with `content()`. Concurrent calls get equal texts."""
    if not file.exists():
        draft = _draft(file, content())
        with suppress(FileExistsError):
            os.link(draft, file)
        draft.unlink()
    return file.read_text()


def write_private(file: Path, text: str) -> None:
    """Write `text` to `file` atomically."""
    _draft(file, text).rename(file)


def _draft(file: Path, text: str) -> Path:
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as opened:
        opened.write(text)
    return draft
