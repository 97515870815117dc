"""Unpacks the archive in which a job sends several files to a web address."""

from __future__ import annotations

import io
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from deepgrid.client.download.folder import Folder, open_part, part_of, writing
from deepgrid.errors import ServiceError

MOST_INDEX_BYTES = 32 * 1024**2  # the list of some 250,000 files
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # of `zip`. LZMA takes as much memory as its header says
UNIX_OWNER = 0x7875  # the field of Info-ZIP, the `zip` of a job, in each of its entries


class _Source(io.FileIO):
    """An archive that refuses to be read in large pieces, as only a list of very many entries is."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MOST_INDEX_BYTES:
            raise zipfile.BadZipFile("too many entries")
        return super().read(size)


def is_of_job(path: Path) -> bool:
    """Whether a file is an archive as a job makes it. Other zip files, such as .npz and .docx, are files of the job."""
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
    """Unpack the wanted files of an archive; returns their paths.

    Raises:
        ServiceError: The archive is damaged.
        InputError: The disk refuses, or two files would have one path.
    """
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
