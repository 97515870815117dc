"""Sends files to the grid in parts, several at a time. A repeated call sends only what is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pydantic import ValidationError

from deepgrid.client.files.exchange import FileExchange, file_exchange
from deepgrid.client.files.local_files import LocalFiles, scan
from deepgrid.client.settings import ClientSettings, patiently
from deepgrid.errors import NotFound, ServiceError
from deepgrid.sbatch.file_addresses import PART_BYTES, checksum_of, part_size
from deepgrid.services.files.file_messages import Progress
from deepgrid.services.files.manifest import Manifest

if TYPE_CHECKING:
    from deepgrid.services.client import FilesClient

AT_ONCE = 4

MOST_PROGRESS_BYTES = 64 * 1024

Tell = Callable[[int, int], None]


class Contents(Protocol):
    """Contents of files as the grid gets them."""

    @property
    def manifest(self) -> Manifest: ...

    def read_into(self, target: memoryview, start: int) -> None: ...


async def send(
    files: FilesClient,
    paths: Sequence[Path],
    authorities: str | None,
    settings: ClientSettings,
    tell: Tell | None = None,
    seal: Callable[[LocalFiles], Contents] | None = None,
) -> str:
    """Send the files that these paths name. Returns the number by which a job refers to them.

    `tell` gets the bytes that are there, and all bytes, after each part. `seal` encrypts private files.
    Raises InputError, AccessDenied or ServiceError.
    """
    found: Contents = await asyncio.to_thread(lambda: seal(scan(paths)) if seal else scan(paths))
    manifest = found.manifest

    async def announce() -> tuple[str, str, bool]:
        said = await files.announce(manifest.digest, manifest.size, len(manifest.entries))
        return said.id, said.address, said.finished

    while True:
        bundle, address, finished = await patiently(announce, settings.patience_s, settings.longest_pause_s)
        if finished:
            return bundle
        async with file_exchange(files.url(address), authorities) as exchange:
            sending = _Sending(exchange, found, settings, tell)
            try:
                await sending.all()
                return bundle
            except NotFound:  # the address has ended, or the upload was deleted: continue with another one
                if not sending.has_progress:
                    raise


class _Sending:
    """One upload."""

    def __init__(self, exchange: FileExchange, files: Contents, settings: ClientSettings, tell: Tell | None) -> None:
        self._exchange, self._files, self._settings = exchange, files, settings
        self._tell = tell or _silent
        self._done = 0
        self.has_progress = False

    async def all(self) -> None:
        manifest = self._files.manifest
        await self._put("manifest", manifest.text)
        while (missing := await self._missing()).left:
            self._done = manifest.size - missing.left * PART_BYTES
            turns = iter(missing.missing)
            tasks = [asyncio.create_task(self._parts(turns)) for _ in range(AT_ONCE)]
            try:
                await asyncio.gather(*tasks)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        await self._put("finish", b"")

    async def _parts(self, turns: Iterator[int]) -> None:
        buffer = memoryview(bytearray(min(PART_BYTES, self._files.manifest.size)))
        for index in turns:  # several of these share the iterator
            part = buffer[: part_size(self._files.manifest.size, index)]
            await asyncio.to_thread(self._files.read_into, part, index * PART_BYTES)
            await self._put(f"parts/{index}", part)
            self._done += len(part)
            self.has_progress = True
            self._tell(max(0, self._done), self._files.manifest.size)

    async def _put(self, what: str, content: bytes | memoryview) -> None:
        checksum = await asyncio.to_thread(checksum_of, content)
        settings = self._settings
        await patiently(
            lambda: self._exchange.put(what, content, checksum), settings.patience_s, settings.longest_pause_s
        )

    async def _missing(self) -> Progress:
        settings = self._settings
        content = await patiently(
            lambda: self._exchange.read("parts", MOST_PROGRESS_BYTES), settings.patience_s, settings.longest_pause_s
        )
        try:
            return Progress.model_validate_json(content)
        except ValidationError:
            raise ServiceError("The grid's services gave an answer that does not follow the protocol.") from None


def _silent(done: int, size: int) -> None:
    """Tell nothing."""
