"""Files of this machine that are sent to the grid: found, and read as one row of bytes."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deepgrid.errors import InputError
from deepgrid.services.files.manifest import FileEntry, Manifest, checked_path


@dataclass(frozen=True)
class LocalFiles:
    """The files in the order of the manifest, and where each of them is."""

    manifest: Manifest
    places: Sequence[Path]

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from `start` up to `end` of all contents. Raises InputError if a file became shorter."""
        found, number = bytearray(), self.manifest.at(start)
        while len(found) < end - start:
            first = start + len(found) - self.manifest.offsets[number]
            size = min(self.manifest.entries[number].size - first, end - start - len(found))
            if size > 0:
                found += self._piece(number, first, size)
            number += 1
        return bytes(found)

    def _piece(self, number: int, first: int, size: int) -> bytes:
        place = self.places[number]
        with _reading(place), place.open("rb") as file:
            file.seek(first)
            piece = file.read(size)
        if len(piece) != size:
            raise InputError(f"{place} changed while it was sent.", next_step="Send it again.")
        return piece


def scan(paths: Sequence[Path]) -> LocalFiles:
    """Return all files that these paths stand for: each path under its own name, a folder with all that is in it.

    A path that ends with `.` stands for what is in the folder. A link to a file inside the same path is sent as that
    file. Raises InputError for another link, a device, a pipe or a socket, and a name that two files would have.
    """
    found: dict[str, Path] = {}
    for path in paths:
        for name, place in _files_of(path):
            if found.setdefault(checked_path(name), place) != place:
                raise InputError(f"{found[name]} and {place} would both be {name!r} at the job.")
    names = sorted(found)
    return LocalFiles(Manifest.of([_entry(name, found[name]) for name in names]), [found[name] for name in names])


def _files_of(path: Path) -> Iterator[tuple[str, Path]]:
    name = "" if os.fspath(path) == "." else path.name
    if name == "..":
        raise InputError("A folder above this one cannot be sent as `..`.", next_step="Give its own path.")
    with _reading(path):
        kind = path.stat().st_mode
    if stat.S_ISREG(kind):
        yield name, path
    elif stat.S_ISDIR(kind):
        yield from _in_folder(path, name)
    else:
        raise _odd(path)


def _in_folder(root: Path, name: str) -> Iterator[tuple[str, Path]]:
    inside = root.resolve()
    for folder, folders, files in os.walk(root, onerror=_raise):
        for file in [*files, *(one for one in folders if Path(folder, one).is_symlink())]:
            place = Path(folder, file)
            if place.is_symlink():
                target = place.resolve()
                if not target.is_file() or inside not in target.parents:
                    raise InputError(
                        f"{place} is a link to a folder, to nothing, or out of {root}.",
                        next_step="Remove it, or put a copy in its place.",
                    )
            elif not place.is_file():
                raise _odd(place)
            yield "/".join(part for part in (name, *place.relative_to(root).parts) if part), place


def _entry(name: str, place: Path) -> FileEntry:
    with _reading(place), place.open("rb") as file:
        found = os.fstat(file.fileno())
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return FileEntry(name, found.st_size, stat.S_IMODE(found.st_mode) & 0o777, sha256)


@contextmanager
def _reading(place: Path) -> Iterator[None]:
    """Raise InputError for a file that cannot be read."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error.strerror or type(error).__name__}.") from None


def _raise(error: OSError) -> None:
    raise InputError(f"{error.filename} cannot be read: {error.strerror}.") from None


def _odd(place: Path) -> InputError:
    return InputError(f"{place} is a pipe, a socket or a device, which cannot be sent.")
