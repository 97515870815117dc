"""Requests at an address of files: nothing is signed, and each is retried while the services do not answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import BytesPayload
from yarl import URL

from deepgrid.errors import AccessDenied, GridError, InputError, NotFound, ServiceError
from deepgrid.safe_http import is_loopback, tls_of
from deepgrid.sbatch.file_addresses import CHECKSUM_HEADER

M = TypeVar("M")

CONNECT_S, SILENCE_S = 30, 60
READ_BYTES, SENT_BYTES = 1024 * 1024, 256 * 1024
MOST_REFUSAL_BYTES = 4096
BUSY = frozenset({408, 425, 429})


class Readable(Protocol):
    """The list and the contents of files."""

    async def read(self, what: str, most_bytes: int) -> bytes: ...
    def pieces(self, what: str, start: int, end: int) -> AsyncGenerator[bytes, None]: ...


class FileExchange:
    """The contents of one bundle at `url`. Use `file_exchange` to open it."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def put(self, what: str, content: bytes | memoryview, checksum: str) -> None:
        """Send a body. Raises ServiceError, AccessDenied, NotFound or InputError."""
        async with self._request("PUT", what, _Body(content), {CHECKSUM_HEADER: checksum}) as answer:
            await answer.read()

    async def read(self, what: str, most_bytes: int) -> bytes:
        """Return an answer as a whole. Raises ServiceError also if it is larger than `most_bytes`."""
        async with self._request("GET", what) as answer:
            found = bytearray()
            async for data in answer.content.iter_chunked(READ_BYTES):
                found += data
                if len(found) > most_bytes:
                    raise ServiceError("The grid's services gave an answer that is too large.", transient=False)
            return bytes(found)

    async def pieces(self, what: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes from `start` up to `end`, which is greater than `start`."""
        async with self._request("GET", what, headers={"Range": f"bytes={start}-{end - 1}"}) as answer:
            if answer.status != 206 or not answer.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
                raise ServiceError("The grid's services gave an answer that does not follow the protocol.")
            async for data in answer.content.iter_any():
                yield data

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        what: str,
        content: BytesPayload | None = None,
        headers: dict[str, str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        where = URL(f"{self._url}/{what}", encoded=True)
        try:
            async with self._session.request(method, where, data=content, headers=headers) as answer:
                if answer.status >= 300:
                    raise _refusal(answer.status, await answer.content.read(MOST_REFUSAL_BYTES))
                yield answer
        except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
            raise ServiceError(
                f"The grid's services do not answer, or the connection broke ({type(error).__name__})."
            ) from None


@asynccontextmanager
async def file_exchange(url: str, authorities: str | None) -> AsyncIterator[FileExchange]:
    """Open the exchange of a bundle. Its address is in no error and no log line."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S)
    async with aiohttp.ClientSession(
        auto_decompress=False,
        connector=aiohttp.TCPConnector(ssl=tls_of(url, authorities)),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity"},
        read_bufsize=READ_BYTES,
        timeout=timeout,
        trust_env=not is_loopback(URL(url).host or ""),
    ) as session:
        yield FileExchange(session, url)


class _Body(BytesPayload):
    """A body that is handed to the connection in pieces. Of a large piece, the connection would copy what must wait."""

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        whole = memoryview(self._value)
        for start in range(0, len(whole), SENT_BYTES):
            await writer.write(whole[start : start + SENT_BYTES])


def _refusal(status: int, body: bytes) -> GridError:
    try:
        found: Any = json.loads(body)
        words = str(found["error"])[:500]
    except (ValueError, KeyError, TypeError):
        words = f"status {status}"
    sentence = f"The grid's services refused: {words}."
    match status:
        case 401 | 403:
            return AccessDenied(sentence, next_step="Try again; if that does not help, tell the grid's operator.")
        case 404:
            return NotFound(sentence, next_step="They may have been deleted, or the address has ended: try again.")
        case 409 | 413 | 416 | 422:
            return InputError(sentence, next_step="Correct it.")
    return ServiceError(sentence, transient=status >= 500 or status in BUSY)
