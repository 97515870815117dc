"""The journal of idempotency keys on this machine: the definition of each key.

One line of JSON per use, appended in one write. The last line about a key counts. A line that was cut off is ignored.
Only the newest keys are kept. Losing the journal loses warnings about keys that are used twice, and nothing else.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deepgrid.client.idempotency.key_lock import opened
from deepgrid.private_files import replace_file

MOST_KEYS = 5000


@dataclass(frozen=True, slots=True)
class Use:
    """What a key stands for: the fingerprint of a definition, and the hash of the first job to be requested."""

    fingerprint: str
    first_hash: str


class Journal:
    """The journal in `folder`. Without a folder it knows nothing. Raises ConfigurationError."""

    def __init__(self, folder: Path | None, most_keys: int = MOST_KEYS) -> None:
        self._file = None if folder is None else folder / "journal"
        self._most_keys = most_keys

    def find(self, key_id: str) -> Use | None:
        """What the key stands for; None if it was not used on this machine, or long ago."""
        if self._file is None or not self._file.exists():
            return None
        return _uses(self._file.read_bytes()).get(key_id)

    def record(self, key_id: str, use: Use) -> None:
        """Remember what the key stands for."""
        if self._file is None:
            return
        with _locked(self._file.with_suffix(".lock")):
            descriptor = opened(self._file)
            try:
                content = _content(descriptor)
                cut_off = b"\n" if content and not content.endswith(b"\n") else b""
                os.write(descriptor, cut_off + _line(key_id, use))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if content.count(b"\n") >= 2 * self._most_keys:
                self._shorten(self._file)

    def _shorten(self, file: Path) -> None:
        newest = list(_uses(file.read_bytes()).items())[-self._most_keys :]
        replace_file(file, b"".join(_line(key_id, use) for key_id, use in newest))


def _line(key_id: str, use: Use) -> bytes:
    return json.dumps({"key": key_id, "definition": use.fingerprint, "first": use.first_hash}).encode() + b"\n"


def _uses(content: bytes) -> dict[str, Use]:
    """The last use of each key, the newest key last."""
    found: dict[str, Use] = {}
    for line in content.splitlines():
        try:
            entry = json.loads(line)
            key_id, use = entry["key"], Use(entry["definition"], entry["first"])
        except (ValueError, KeyError, TypeError):
            continue  # cut off, or damaged
        found.pop(key_id, None)
        found[key_id] = use
    return found


def _content(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    parts = []
    while part := os.read(descriptor, 1 << 20):
        parts.append(part)
    return b"".join(parts)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    descriptor = opened(file)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # for the time of one write
        yield
    finally:
        os.close(descriptor)
