"""Fetches one file over HTTP: in pieces that survive interruptions, checked by size and checksum."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path

import aiohttp
from yarl import URL

from deepgrid.client.download.folder import open_part, part_of, size_of, writing
from deepgrid.client.settings import ClientSettings, patiently
from deepgrid.errors import AccessDenied, ServiceError
from deepgrid.safe_http import is_loopback

CHUNK_BYTES = 1024 * 1024
CONNECT_S, SILENCE_S = 30, 60
BUSY = frozenset({408, 425, 429})
MISSING = frozenset({404, 410})
_MD5 = re.compile(r'"?([0-9a-f]{32})"?', re.ASCII)
_RANGE = re.compile(r"bytes (?:([0-9]{1,18})-[0-9]{1,18}|\*)/([0-9]{1,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A version of a file at a server.

    Attributes:
        name: Its name at the server.
        size: Bytes; None if the server does not say.
        etag: The server's tag of this version; empty if there is none.
        modified_s: Time of this version in unix seconds; 0 if unknown.
        hashed: Whether a tag of 32 hexadecimal digits is the MD5 sum, as in buckets.
        address: Makes an address for the next seconds. It may hold a signature.
    """

    name: str
    size: int | None
    etag: str
    modified_s: int
    hashed: bool
    address: Callable[[], str] = field(repr=False)

    @property
    def version(self) -> str:
        """Eight characters that distinguish this version from others."""
        return hashlib.sha256(repr((self.name, self.size, self.etag, self.modified_s)).encode()).hexdigest()[:8]

    def is_at(self, place: Path) -> bool:
        """Return whether this version was fetched to the place before, by size and time."""
        if not self.modified_s or self.size is None or place.is_symlink() or not place.is_file():
            return False
        found = place.stat()
        return (found.st_size, int(found.st_mtime)) == (self.size, self.modified_s)


class NotThere(ServiceError):
    """The server has no such file."""

    transient = False


def new_session(url: str) -> aiohttp.ClientSession:
    """Return a session for one server. A proxy of the environment does not see requests to this machine."""
    return aiohttp.ClientSession(
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity"},
        read_bufsize=CHUNK_BYTES,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S),
        trust_env=not is_loopback(URL(url).host or ""),
    )


class Fetcher:
    """Fetches files from one server."""

    def __init__(self, session: aiohttp.ClientSession, settings: ClientSettings) -> None:
        self._session = session
        self._settings = settings

    async def describe(self, name: str, address: str) -> RemoteFile:
        """Return the server's description of an address. Raises NotThere or ServiceError.

        It requests one byte, because signed addresses often allow only GET.
        """
        async with self._answer(address, {"Range": "bytes=0-0"}) as answer:
            total = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            size = int(total[2]) if total and answer.status != 200 else answer.content_length
            etag = answer.headers.get("ETag", "")
            modified_s = _unix_s(answer.headers.get("Last-Modified", ""))
        return RemoteFile(name, size, "" if etag.startswith("W/") else etag, modified_s, False, lambda: address)

    async def fetch(self, file: RemoteFile, place: Path) -> Path:
        """Fetch a file to its place. Interruptions are retried for the client's patience, which each progress renews.

        Raises ServiceError, or InputError if the disk refuses.
        """
        if file.is_at(place):
            return place
        part = part_of(place, file.version)
        settings = self._settings
        await patiently(
            lambda: self._complete(file, part),
            settings.patience_s,
            settings.longest_pause_s,
            progress=lambda: size_of(part),
        )
        with writing(place):
            if file.modified_s:
                os.utime(part, (file.modified_s, file.modified_s))
            part.replace(place)
        return place

    async def _complete(self, file: RemoteFile, part: Path) -> None:
        """Fetch what is missing of the file, and check the whole."""
        done = size_of(part)
        if file.size is None or done > file.size:
            done = 0
        elif done == file.size:
            done = max(0, done - 1)  # the answer also says whether the tag is a checksum
        headers = {"Range": f"bytes={done}-"} if done else {}
        if file.etag:
            headers["If-Match"] = file.etag
        async with self._answer(file.address(), headers) as answer:
            if answer.headers.get("ETag", file.etag) != file.etag != "":
                raise _file_changed()
            await self._store(answer, part, _start_of(answer, done), file.size)
            encrypted = answer.headers.get("x-amz-server-side-encryption", "").startswith("aws:kms")
        if file.size is not None and size_of(part) != file.size:
            raise ServiceError(f"The server sent {size_of(part)} bytes of a file of {file.size}.")
        announced = _MD5.fullmatch(file.etag) if file.hashed and not encrypted else None
        if announced and await asyncio.to_thread(_md5_of, part) != announced[1]:
            part.unlink()
            raise ServiceError("A file arrived with another checksum than the server announced.")

    async def _store(self, answer: aiohttp.ClientResponse, part: Path, at: int, size: int | None) -> None:
        """Write the body of the answer from the offset `at` on."""
        with open_part(part, at) as file:
            async for data in answer.content.iter_chunked(CHUNK_BYTES):
                at += len(data)
                if size is not None and at > size:
                    raise _file_changed()
                with writing(part):
                    await asyncio.to_thread(file.write, data)
            with writing(part):
                file.flush()

    @asynccontextmanager
    async def _answer(self, address: str, headers: dict[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield the server's answer. Errors of the connection become ServiceError, without the address."""
        try:
            async with self._session.get(URL(address, encoded=True), headers=headers) as answer:
                _check(answer.status, sized="Range" in headers)
                yield answer
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ServiceError(
                f"The server of the job's output does not answer, or the connection broke ({type(error).__name__})."
            ) from None


def _check(status: int, *, sized: bool) -> None:
    """Raise the error of an answer without a body of the file."""
    if status in (200, 206) or (status == 416 and sized):
        return
    if status in MISSING:
        raise NotThere("The server does not have the job's output.", next_step="Wait until the job is over.")
    if status in (412, 416):
        raise _file_changed()
    if status in (401, 403):
        raise AccessDenied(
            f"The server of the job's output refuses to hand it out (status {status}).",
            next_step="Check the credentials, and whether the address may also be read.",
        )
    raise ServiceError(
        f"The server of the job's output answered with status {status}.", transient=status >= 500 or status in BUSY
    )


def _start_of(answer: aiohttp.ClientResponse, asked: int) -> int:
    """Return the offset at which the body begins: the offset in the request, or 0 from a server without ranges."""
    if answer.status == 200:
        return 0
    found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
    if answer.status == 206 and found and found[1] and int(found[1]) == asked:
        return asked
    raise _file_changed()


def _file_changed() -> ServiceError:
    return ServiceError(
        "A file of the job's output changed while it was fetched.", transient=False, next_step="Download it again."
    )


def _md5_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _unix_s(date: str) -> int:
    try:
        return max(0, int(parsedate_to_datetime(date).timestamp()))
    except (ValueError, OverflowError):
        return 0
