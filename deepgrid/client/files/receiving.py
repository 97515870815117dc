"""Fetches files that the grid keeps: the list of them, and their contents, many small ones by one request."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from deepgrid.client.download.folder import Folder, open_part, part_of, size_of, writing
from deepgrid.client.files.exchange import Readable
from deepgrid.client.settings import ClientSettings, patiently
from deepgrid.errors import ServiceError
from deepgrid.services.files.manifest import MAX_MANIFEST_BYTES, FileEntry, Manifest

LONGEST_RUN_BYTES = 256 * 1024 * 1024  # of one request
BATCH_BYTES = 1024 * 1024  # written at once


@dataclass(frozen=True)
class _Wanted:
    """A file that is missing here. `have` bytes of it are in its `part`."""

    entry: FileEntry
    offset: int
    place: Path
    part: Path
    have: int


class KeptFiles:
    """The files of one bundle."""

    def __init__(self, exchange: Readable, settings: ClientSettings) -> None:
        self._exchange = exchange
        self._settings = settings
        self._kept_bytes = 0  # that arrived, without the bytes of files with a wrong checksum

    @property
    def has_progress(self) -> bool:
        """Whether contents arrived."""
        return self._kept_bytes > 0

    async def manifest(self) -> Manifest:
        """Return the list of the files. Raises ServiceError, including for paths that lead out of the folder."""
        settings = self._settings
        return Manifest.parse(
            await patiently(
                lambda: self._exchange.read("manifest", MAX_MANIFEST_BYTES),
                settings.patience_s,
                settings.longest_pause_s,
            )
        )

    async def fetch(self, manifest: Manifest, to: Path, wanted: Callable[[str], bool]) -> list[Path]:
        """Fetch the wanted files into a folder; returns their paths. Files that are there already are kept.

        Raises ServiceError, or InputError if the disk refuses.
        """
        folder = Folder(to)
        chosen = {entry.path: number for number, entry in enumerate(manifest.entries) if wanted(entry.path)}
        places = folder.places(chosen)
        folder.make_room(*places.values())

        async def fetch_missing() -> None:
            missing = await asyncio.to_thread(_missing, manifest, chosen, places)
            folder.check_space(sum(one.entry.size - one.have for one in missing))
            for run in _runs(missing):
                await self._fetch_run(run)

        settings = self._settings
        await patiently(fetch_missing, settings.patience_s, settings.longest_pause_s, progress=lambda: self._kept_bytes)
        return list(places.values())

    def _count(self, kept_bytes: int) -> None:
        self._kept_bytes += kept_bytes

    async def _fetch_run(self, run: Sequence[_Wanted]) -> None:
        """Fetch files whose contents follow each other, by one request."""
        start, end = run[0].offset + run[0].have, run[-1].offset + run[-1].entry.size
        sink = _Sink(run, self._count)
        try:
            if start < end:
                async with aclosing(self._exchange.pieces("data", start, end)) as pieces:
                    await _write(pieces, sink)
            await asyncio.to_thread(sink.end)
        finally:
            sink.close()


async def _write(pieces: AsyncIterator[bytes], sink: _Sink) -> None:
    """Write what arrives. A thread checks and writes some of it while more arrives."""
    writing: asyncio.Future[None] | None = None
    waiting, size = list[bytes](), 0
    try:
        async for data in pieces:
            waiting.append(data)
            size += len(data)
            if size < BATCH_BYTES:
                continue
            if writing is not None:
                await writing
            writing = asyncio.ensure_future(asyncio.to_thread(sink.write, waiting))
            waiting, size = [], 0
        if writing is not None:
            await writing
        await asyncio.to_thread(sink.write, waiting)
    finally:
        if writing is not None:  # the thread uses the sink, which is closed next
            await asyncio.gather(writing, return_exceptions=True)


class _Sink:
    """Writes contents that follow each other into their files. A file gets its name once its checksum is right.

    `count` gets the number of bytes that were written. It is negative when a file is dropped.
    """

    def __init__(self, run: Sequence[_Wanted], count: Callable[[int], None]) -> None:
        self._count = count
        self._run = iter(run)
        self._now: _Wanted | None = None
        self._file: IO[bytes] | None = None
        self._hash: Any = None
        self._left = 0

    def write(self, pieces: Sequence[bytes]) -> None:
        for data in pieces:
            self._write(memoryview(data))

    def _write(self, view: memoryview) -> None:
        while view:
            if self._now is None and not self._next():
                raise ServiceError("The grid's services sent more than was asked for.")
            assert self._file is not None and self._now is not None
            piece = view[: self._left]
            with writing(self._now.part):
                self._file.write(piece)
            self._count(len(piece))
            self._hash.update(piece)
            self._left -= len(piece)
            view = view[len(piece) :]
            if not self._left:
                self._finish_file()

    def end(self) -> None:
        """Finish empty files. Raises ServiceError if something is missing."""
        if self._now is not None or self._next():
            raise ServiceError("The connection to the grid's services broke.")

    def _next(self) -> bool:
        """Begin the next file that lacks bytes, and finish those before it. Returns whether there is one."""
        for now in self._run:
            self._now = now
            self._hash = hashlib.sha256()
            if now.have:
                with writing(now.part), now.part.open("rb") as file:
                    while data := file.read(1024 * 1024):
                        self._hash.update(data)
            self._file = open_part(now.part, now.have)
            self._left = now.entry.size - now.have
            if self._left:
                return True
            self._finish_file()
        return False

    def _finish_file(self) -> None:
        now, file = self._now, self._file
        assert now is not None and file is not None
        self._now = self._file = None
        with writing(now.part), file:
            os.fchmod(file.fileno(), 0o755 if now.entry.mode & 0o100 else 0o644)
        if self._hash.hexdigest() != now.entry.sha256:
            now.part.unlink()
            self._count(-now.entry.size)
            raise ServiceError(f"The file {now.entry.path!r} arrived with another checksum than it was sent with.")
        with writing(now.place):
            os.replace(now.part, now.place)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def _missing(manifest: Manifest, chosen: dict[str, int], places: dict[str, Path]) -> list[_Wanted]:
    """Return the files that are not here as a whole, in the order of their contents."""
    found = []
    for path, number in chosen.items():
        entry, place = manifest.entries[number], places[path]
        if not _is_at(entry, place):
            part = part_of(place, entry.sha256[:8])
            have = size_of(part)
            found.append(_Wanted(entry, manifest.offsets[number], place, part, have if have <= entry.size else 0))
    return found


def _is_at(entry: FileEntry, place: Path) -> bool:
    if size_of(place) != entry.size or not place.is_file() or place.is_symlink():
        return False
    with writing(place), place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == entry.sha256


def _runs(missing: Sequence[_Wanted]) -> list[list[_Wanted]]:
    """Return the files in groups whose contents follow each other without a gap."""
    runs: list[list[_Wanted]] = []
    for one in missing:
        last = runs[-1][-1] if runs else None
        follows = last is not None and last.offset + last.entry.size == one.offset and not one.have
        if follows and one.offset + one.entry.size - runs[-1][0].offset <= LONGEST_RUN_BYTES:
            runs[-1].append(one)
        else:
            runs.append([one])
    return runs
