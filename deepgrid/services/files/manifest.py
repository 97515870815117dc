"""The list of a bundle's files. Its text is made by clients and by the shell of a job, and is never trusted.

One entry per file, each ended by NUL: `SIZE MODE SHA256  PATH`. The contents follow each other in this order. Only
regular files have entries, so nothing in a bundle can be a link, a device or a folder.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Self

from deepgrid.errors import InputError
from deepgrid.sbatch.file_addresses import LONGEST_PATH, MOST_FOLDERS

MAX_MANIFEST_BYTES = 16 * 1024 * 1024
LONGEST_NAME = 255  # bytes
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_ENTRY = re.compile(rb"([0-9]{1,15}) ([0-7]{1,4}) ([0-9a-f]{64}) [ *](.+)", re.S)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a bundle. `sha256` is in hexadecimal digits, `mode` has the nine bits of its rights."""

    path: str
    size: int
    mode: int
    sha256: str

    def line(self) -> bytes:
        return b"%d %03o %s  %s" % (self.size, self.mode, self.sha256.encode(), self.path.encode())


@dataclass(frozen=True)
class Manifest:
    """The files of a bundle in the order of their contents. `digest` is of the text that it was read from."""

    entries: Sequence[FileEntry]
    digest: str
    text: bytes = field(repr=False)

    @classmethod
    def of(cls, entries: Sequence[FileEntry]) -> Self:
        """Return the manifest of these files. Raises InputError."""
        return cls.parse(b"".join(entry.line() + b"\0" for entry in entries))

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Read a manifest. Raises InputError for a name that leads elsewhere, or that two files have."""
        if len(text) > MAX_MANIFEST_BYTES:
            raise InputError(f"the names of the files have more than {MAX_MANIFEST_BYTES} bytes together")
        if text and not text.endswith(b"\0"):
            raise InputError("the list of files is cut off")
        entries = [_entry(line) for line in text.split(b"\0")[:-1]]
        _require_apart(entries)
        return cls(entries, hashlib.sha256(text).hexdigest(), text)

    @classmethod
    def unpack(cls, packed: bytes) -> Self:
        """Read a stored manifest, and prepare its index."""
        found = cls.parse(zlib.decompress(packed))
        found.at(0)
        found.find("")
        return found

    @cached_property
    def packed(self) -> bytes:
        """The text as it is stored: compressed."""
        return zlib.compress(self.text, 1)

    @cached_property
    def offsets(self) -> list[int]:
        """Where the content of each file begins, and at the end the size of all."""
        return [0, *accumulate(entry.size for entry in self.entries)]

    @property
    def size(self) -> int:
        return self.offsets[-1]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {entry.path: number for number, entry in enumerate(self.entries)}

    def find(self, path: str) -> tuple[FileEntry, int] | None:
        """Return a file and where its content begins; None if there is no such file."""
        number = self._places.get(path)
        return None if number is None else (self.entries[number], self.offsets[number])

    def at(self, offset: int) -> int:
        """Return the number of the file whose content has the byte at this offset."""
        return bisect_right(self.offsets, offset) - 1


def _entry(line: bytes) -> FileEntry:
    found = _ENTRY.fullmatch(line)
    if not found:
        raise InputError("the list of files has an entry that is not SIZE MODE SHA256 PATH")
    size, mode, sha256, name = found.groups()
    name = name.removeprefix(b"./")
    _require_short(name)
    path = _require_inside(_text_of(name))
    return FileEntry(path, int(size), int(mode, 8) & 0o777, sha256.decode())


def _text_of(name: bytes) -> str:
    """Return a name as text. Bytes that are not UTF-8 become `%FF`, so that two names never become one."""
    text = name.decode(errors="surrogateescape")
    return _NOT_UTF8.sub(lambda found: f"%{ord(found[0]) - 0xDC00:02X}", text)


def checked_path(path: str) -> str:
    """Return the path of a file in a bundle. Raises InputError for a path that could lead elsewhere, or is too long."""
    try:
        _require_short(path.encode())
    except UnicodeEncodeError:
        raise InputError(f"the name of the file {path[:100]!a} is not UTF-8", next_step="Rename it.") from None
    return _require_inside(path)


def _require_short(path: bytes) -> None:
    if len(path) > LONGEST_PATH or any(len(part) > LONGEST_NAME for part in path.split(b"/")):
        raise InputError(f"the name of a file is too long: {path[:100].decode(errors='replace')!r}")


def _require_inside(path: str) -> str:
    parts = path.split("/")
    if "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise InputError(f"{path[:100]!r} is no path of a file: it must not begin or end with /, nor have . or ..")
    if len(parts) - 1 > MOST_FOLDERS:
        raise InputError(f"a file is in {len(parts) - 1} folders; at most {MOST_FOLDERS} are kept")
    return path


def _require_apart(entries: Sequence[FileEntry]) -> None:
    """Raise InputError if two files have one path, or one is the folder of another."""
    paths = {entry.path for entry in entries}
    if len(paths) != len(entries):
        raise InputError("two files of the list have the same path")
    folders = set[str]()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:  # those above are known with it
            if folder in paths:
                raise InputError(f"{folder[:100]!r} is a file and a folder in the list")
            folders.add(folder)
            folder = folder.rpartition("/")[0]
