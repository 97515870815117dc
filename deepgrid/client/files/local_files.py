"""Files of this machine that are sent to the grid: found, and read as one row of bytes."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deepgrid.errors import InputError
from deepgrid.services.files.manifest import FileEntry, Manifest, checked_path

HASHED_AT_ONCE, HASHED_TOGETHER = 2, 100
SMALL_BYTES = 64 * 1024  # read at once

State = tuple[int, int]  # size and time of the last change, in nanoseconds


@dataclass(frozen=True)
class LocalFiles:
    """The files in the order of the manifest, where each of them is, and its state when its checksum was made."""

    manifest: Manifest
    places: Sequence[Path]
    states: Sequence[State]

    def read_into(self, target: memoryview, start: int) -> None:
        """Fill the target with all contents from `start` on. Raises InputError if a file was changed."""
        done, number = 0, self.manifest.at(start)
        while done < len(target):
            first = start + done - self.manifest.offsets[number]
            size = min(self.manifest.entries[number].size - first, len(target) - done)
            if size > 0:
                self._read_piece(target[done : done + size], number, first)
                done += size
            number += 1

    def _read_piece(self, target: memoryview, number: int, first: int) -> None:
        place = self.places[number]
        with _reading(place), open(place, "rb", buffering=0) as file:
            file.seek(first)
            while target and (size := file.readinto(target)):
                target = target[size:]
            state = _state_of(file)
        if target or state != self.states[number]:
            raise _changed(place)


def scan(paths: Sequence[Path]) -> LocalFiles:
    """Return all files that these paths name: each path under its own name, a folder with everything in it.

    A path that ends with `.` means the contents of the folder. A link to a file inside the same path is sent as that
    file. Raises InputError for another link, a device, a pipe or a socket, and a name that two files would have.
    """
    found: dict[str, Path] = {}
    for path in paths:
        for name, place in _files_of(path):
            if found.setdefault(checked_path(name), place) != place:
                raise InputError(f"{found[name]} and {place} would both be {name!r} at the job.")
    ordered = sorted(found.items())
    groups = [ordered[start : start + HASHED_TOGETHER] for start in range(0, len(ordered), HASHED_TOGETHER)]
    with ThreadPoolExecutor(HASHED_AT_ONCE) as threads:
        entries = [entry for group in threads.map(_entries, groups) for entry in group]
    manifest = Manifest.of([entry for entry, _ in entries])
    return LocalFiles(manifest, [place for _, place in ordered], [state for _, state in entries])


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
        above = Path(name, Path(folder).relative_to(root)).as_posix()
        for file in [*files, *(one for one in folders if os.path.islink(os.path.join(folder, one)))]:
            place = Path(folder, file)
            with _reading(place):
                kind = place.lstat().st_mode
            if stat.S_ISLNK(kind):
                target = place.resolve()
                if not target.is_file() or inside not in target.parents:
                    raise InputError(
                        f"{place} is a link to a folder, to nothing, or out of {root}.",
                        next_step="Remove it, or put a copy in its place.",
                    )
            elif not stat.S_ISREG(kind):
                raise _odd(place)
            yield file if above == "." else f"{above}/{file}", place


def _entries(found: Sequence[tuple[str, Path]]) -> list[tuple[FileEntry, State]]:
    return [_entry(name, place) for name, place in found]


def _entry(name: str, place: Path) -> tuple[FileEntry, State]:
    with _reading(place), open(place, "rb", buffering=0) as file:
        found, state = os.fstat(file.fileno()), _state_of(file)
        if found.st_size <= SMALL_BYTES:
            sha256 = hashlib.sha256(file.read()).hexdigest()
        else:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if _state_of(file) != state:
            raise _changed(place)
    mode = 0o755 if found.st_mode & stat.S_IXUSR else 0o644  # other rights would make other files of the same ones
    return FileEntry(name, found.st_size, mode, sha256), state


def _state_of(file: io.FileIO) -> State:
    found = os.fstat(file.fileno())
    return found.st_size, found.st_mtime_ns


def _changed(place: Path) -> InputError:
    return InputError(f"{place} changed while it was sent.", next_step="Send it again.")


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
