"""A bundle as one file: a tar archive, which has the same bytes each time and can be resumed, or a zip archive.

Only regular files are in it, with the rights of their owner.
"""

from __future__ import annotations

import asyncio
import tarfile
import zipfile
from bisect import bisect_right
from collections.abc import AsyncIterator
from io import BytesIO
from typing import IO, cast

from deepgrid.services.files.manifest import FileEntry, Manifest
from deepgrid.services.files.parts import PartReader

BLOCK = 512
END = bytes(2 * BLOCK)
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
TURN = 100  # entries after which other requests have their turn


class TarView:
    """The tar archive of a bundle. Any range of its bytes can be read."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._starts, at = list[int](), 0
        for entry in manifest.entries:
            self._starts.append(at)
            at += len(_header(entry)) + _padded_size(entry.size)
        self.size = at + len(END)
        self._end = at

    async def read(self, reader: PartReader, start: int, end: int) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` up to `end`. Raises ServiceError."""
        number = max(0, bisect_right(self._starts, start) - 1)
        while start < end and number < len(self._starts):
            if number % TURN == 0:
                await asyncio.sleep(0)
            at = self._starts[number]
            entry, offset = self._manifest.entries[number], self._manifest.offsets[number]
            header = _header(entry)
            content, padding = at + len(header), at + len(header) + entry.size
            if start < content:
                yield header[start - at : end - at]
            first, last = max(start, content), min(end, padding)
            async for piece in reader.read(offset + first - content, offset + last - content):
                yield piece
            following = content + _padded_size(entry.size)
            if padding < end and max(start, padding) < following:
                yield bytes(min(end, following) - max(start, padding))
            start, number = max(start, following), number + 1
        if start < end:
            yield END[start - self._end : end - self._end]


async def zip_of(manifest: Manifest, reader: PartReader) -> AsyncIterator[bytes]:
    """Yield a zip archive of the bundle, without compression. Raises ServiceError."""
    sink = _Sink()
    archive = zipfile.ZipFile(cast(IO[bytes], sink), "w", zipfile.ZIP_STORED, allowZip64=True)
    try:
        for number, (entry, offset) in enumerate(zip(manifest.entries, manifest.offsets, strict=False)):
            if number % TURN == 0:
                await asyncio.sleep(0)
            info = zipfile.ZipInfo(entry.path, ZIP_TIME)
            info.external_attr = (0o100000 | _mode(entry)) << 16
            with archive.open(info, "w", force_zip64=entry.size >= 2**31) as file:
                async for piece in reader.read(offset, offset + entry.size):
                    file.write(piece)
                    if written := sink.taken():
                        yield written
        await asyncio.to_thread(archive.close)  # writes the list of all entries
        yield sink.taken()
    finally:
        archive.filelist.clear()  # for a reader that left: the garbage collector closes the archive


class _Sink:
    """Where a zip archive is written. What was written is taken away, so nothing can be changed afterwards."""

    def __init__(self) -> None:
        self._buffer, self._at = BytesIO(), 0

    def write(self, data: bytes) -> int:
        self._at += len(data)
        return self._buffer.write(data)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """Do nothing. `zipfile` calls this."""

    def seekable(self) -> bool:
        return False

    def taken(self) -> bytes:
        data, self._buffer = self._buffer.getvalue(), BytesIO()
        return data


def checksums(manifest: Manifest) -> bytes:
    """Return what `sha256sum --check` reads."""
    return b"".join(_sum_line(entry) for entry in manifest.entries)


def zero_checksums(manifest: Manifest) -> bytes:
    """Return what `sha256sum --zero` prints of all files below the folder `.`. It escapes nothing."""
    return b"".join(f"{entry.sha256}  ./{entry.path}\0".encode() for entry in manifest.entries)


def _sum_line(entry: FileEntry) -> bytes:
    name = entry.path.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    mark = "\\" if name != entry.path else ""
    return f"{mark}{entry.sha256}  {name}\n".encode()


def _mode(entry: FileEntry) -> int:
    return 0o700 if entry.mode & 0o100 else 0o600


def _header(entry: FileEntry) -> bytes:
    member = tarfile.TarInfo(entry.path)
    member.size, member.mode = entry.size, _mode(entry)
    return member.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _padded_size(size: int) -> int:
    return -(-size // BLOCK) * BLOCK
