"""Files that appear whole or not at all: a crash leaves the old file or the new one, never a part.

Only their owner can read them, from the start, unless another mode is asked for. All functions raise OSError.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

PIECE_BYTES = 1 << 20


def replace_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Write the file at `path`, or replace it."""
    with draft_of(path) as draft:
        draft.write(data)
        sync(draft)
        os.fchmod(draft.fileno(), mode)
        os.replace(draft.name, path)


def create_file(path: Path, data: bytes) -> None:
    """Write a new file. Raises FileExistsError if there is one: of several processes, one wins."""
    with draft_of(path) as draft:
        draft.write(data)
        sync(draft)
        os.link(draft.name, path)  # unlike a rename, a link never replaces


def write_json(path: Path, value: Any, mode: int = 0o644) -> None:
    """Replace the file at `path` by this value, by default readable by all. Makes a missing folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(value, indent=2).encode() + b"\n", mode)


def copy_private(source: IO[bytes], to: Path) -> str:
    """Copy the rest of `source` into a new file, in pieces. Returns the hex digits of its SHA-256.

    The copy is not atomic: a crash leaves a part. Raises FileExistsError if there is a file.
    """
    digest = hashlib.sha256()
    with open(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as copy:
        while piece := source.read(PIECE_BYTES):
            digest.update(piece)
            copy.write(piece)
        sync(copy)
    return digest.hexdigest()


@contextmanager
def draft_of(path: Path) -> Iterator[IO[bytes]]:
    """Yield a new file next to `path`, mode 0600.

    Rename or link its `name`; what is left of it is removed at the end.
    """
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as draft:
        try:
            yield draft
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft.name)


def sync(file: IO[bytes]) -> None:
    """Put what was written to the file on disk, so that a power cut does not lose it."""
    file.flush()
    os.fsync(file.fileno())


def unwritable_part(folder: Path) -> Path | None:
    """Return the part of this path that this account cannot write: the folder, or its nearest existing parent.

    None if the account can write or make the folder.
    """
    nearest = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    return None if nearest.is_dir() and os.access(nearest, os.W_OK) else nearest


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
