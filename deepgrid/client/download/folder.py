"""Places of downloaded files: names that a stranger chose become paths that stay in one folder."""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import struct
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from deepgrid.errors import InputError, ServiceError
from deepgrid.plain_text import is_steering

MOST_INDEX_BYTES = 32 * 1024**2  # the list of some 250,000 files
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # of `zip`. LZMA takes as much memory as its header says
UNIX_OWNER = 0x7875  # the field of Info-ZIP, the `zip` of a job, in each of its entries

LONGEST_STEM_BYTES = 200
MOST_FOLDERS = 100  # of one file, each in the one before
CHOOSE = "Choose some of the files with `only`."
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)


_PLAIN = re.compile(r"[A-Za-z0-9_][\w. -]*(/[A-Za-z0-9_][\w. -]*)*", re.ASCII)


def safe_name(name: str) -> PurePosixPath:
    """Return the name as a relative path. Parts that would lead elsewhere, and characters that steer a terminal, are
    encoded.

    `/a//../b` becomes `a/%2E%2E/b`, and a line end becomes `%0A`.
    """
    if _PLAIN.fullmatch(name):
        return PurePosixPath(name)
    parts = [_safe_part(part) for part in name.split("/") if part]
    return PurePosixPath(*parts) if parts else PurePosixPath("%2F")


def _safe_part(part: str) -> str:
    if part in (".", ".."):
        return part.replace(".", "%2E")
    return "".join(_percent_encode(c) if is_steering(c) or c == "\\" else c for c in part)


def _percent_encode(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


class Folder:
    """The target of a download. It is created if it is missing."""

    def __init__(self, root: Path) -> None:
        self._root = root
        with writing(root):
            root.mkdir(parents=True, exist_ok=True)

    def places(self, names: Iterable[str]) -> dict[str, Path]:
        """Return a path in this folder for each name.

        Raises:
            InputError: Two files would have the same path, one would be the folder of another, or one is too deep.
                A file system may ignore the case of letters.
        """
        places = dict[str, PurePosixPath]()
        for name in names:
            if name.count("/") > MOST_FOLDERS:
                raise InputError(f"A file of the output is in {name.count('/')} folders.", next_step=CHOOSE)
            places[name] = safe_name(name)
        clash = _clash_of(places.values())
        if clash is None and (folded := _clash_of(map(_folded, places.values()))) and self._ignores_case():
            clash = folded
        if clash is not None:
            raise InputError(f"Two files of the output would both be {str(clash)[:120]!r}.", next_step=CHOOSE)
        return {name: self._root / place for name, place in places.items()}

    def _ignores_case(self) -> bool:
        """Return whether names that differ in case, or in the encoding of letters, are one to the file system."""
        with writing(self._root), tempfile.TemporaryDirectory(dir=self._root, prefix="\u00e4") as probe:
            name = Path(probe).name
            return any((self._root / other).exists() for other in (name.upper(), unicodedata.normalize("NFD", name)))

    def make_room(self, *places: Path) -> None:
        """Create the folders above these. Raises InputError if one is a link, which may lead out of this folder."""
        for one in {place.parent: place for place in places}.values():
            self._make_room(one)

    def _make_room(self, place: Path) -> None:
        above = self._root
        for part in place.relative_to(self._root).parts[:-1]:
            above /= part
            with writing(above):
                above.mkdir(exist_ok=True)
                if not stat.S_ISDIR(above.lstat().st_mode):
                    raise InputError(f"{above} is not a folder.", next_step="Download to another folder.")

    def check_space(self, size: int) -> None:
        """Raise InputError if `size` bytes do not fit on the disk."""
        with writing(self._root):
            free = shutil.disk_usage(self._root).free
        if size > free:
            raise InputError(f"The output needs {size} bytes, and {self._root} has {free} bytes free.")


def part_of(place: Path, version: str) -> Path:
    """Return where the incomplete file is. Another `version` of it has another place."""
    stem = place.name.encode()[:LONGEST_STEM_BYTES].decode(errors="ignore")
    return place.with_name(f"{stem}.{version}.part")


def open_part(part: Path, at: int) -> IO[bytes]:
    """Open an incomplete file, to write from the offset `at` on. It does not follow a link."""
    with writing(part):
        file = os.fdopen(os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | NO_FOLLOW, 0o666), "r+b")
        file.seek(at)
        file.truncate()
        return file


def size_of(path: Path) -> int:
    """Return the size of a file in bytes; 0 if there is no such file, and for a link."""
    try:
        found = path.lstat()
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise InputError for a file system that refuses."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or type(error).__name__}.") from None


def _clash_of(places: Iterable[PurePosixPath]) -> PurePosixPath | None:
    """Return a path that two files have, or a file and a folder; None if there is none."""
    found = set[PurePosixPath]()
    for place in places:
        if place in found:
            return place
        found.add(place)
    folders = {folder for above in {place.parent for place in found} for folder in (above, *above.parents)}
    return next(iter(folders & found), None)


def _folded(place: PurePosixPath) -> PurePosixPath:
    return PurePosixPath(unicodedata.normalize("NFC", str(place)).casefold())


class _Source(io.FileIO):
    """An archive that refuses to be read in large pieces, because only a huge list of entries needs them."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MOST_INDEX_BYTES:
            raise zipfile.BadZipFile("too many entries")
        return super().read(size)


def is_of_job(path: Path) -> bool:
    """Return whether a file is an archive as a job makes it.

    Other zip files, such as .npz and .docx, are files of the job.
    """
    try:
        with _Source(path) as file, zipfile.ZipFile(file) as archive:
            return bool(archive.infolist()) and all(_is_of_info_zip(one) for one in archive.infolist())
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError):
        return False


def _is_of_info_zip(entry: zipfile.ZipInfo) -> bool:
    rest = entry.extra
    while len(rest) >= 4:
        kind, length = struct.unpack("<HH", rest[:4])
        if kind == UNIX_OWNER:
            return True
        rest = rest[4 + length :]
    return False


def unpack(path: Path, folder: Folder, wanted: Callable[[str], bool]) -> list[Path]:
    """Unpack the wanted files of an archive; returns their paths. Raises ServiceError or InputError."""
    try:
        with _Source(path) as file, zipfile.ZipFile(file) as archive:
            if any(one.compress_type not in METHODS for one in archive.infolist()):
                raise ValueError("another method of compression")
            entries = {one.filename: one for one in archive.infolist() if not one.is_dir() and wanted(one.filename)}
            folder.check_space(sum(one.file_size for one in entries.values()))
            places = folder.places(entries)
            for name, place in places.items():
                folder.make_room(place)
                _unpack_one(archive, entries[name], place)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise ServiceError(
            f"The archive with the job's output is damaged ({type(error).__name__}).", transient=False
        ) from None
    return list(places.values())


def _unpack_one(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, place: Path) -> None:
    part = part_of(place, f"{entry.CRC:08x}")
    try:
        with archive.open(entry) as source, open_part(part, 0) as target, writing(place):
            shutil.copyfileobj(source, target)  # checks the entry's size and CRC
        with writing(place):
            part.replace(place)
    finally:
        part.unlink(missing_ok=True)
