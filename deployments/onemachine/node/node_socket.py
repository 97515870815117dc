"""The private access to the grid's node: a unix socket in a folder of mode 0700, with all methods.

A connection has one request at a time. The node ends each answer with a newline.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from deepgrid.errors import ChainError

AT_ONCE = 16
WITHIN_S = 30.0
PROBE_WITHIN_S = 5.0
LONGEST_ANSWER = 256 * 2**20


class NodeSocket:
    """The node behind a socket, with at most `AT_ONCE` kept-open connections."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def call(self, method: str, *params: Any) -> Any:
        """Return the result of one request. Raises ChainError for a refusal, and when the node does not answer."""
        return (await self.batch([(method, params)]))[0]

    async def batch(self, requests: Sequence[tuple[str, Sequence[Any]]]) -> list[Any]:
        """Return the results of many requests in order. Raises ChainError for the first refusal."""
        asked = [_request(number, method, params) for number, (method, params) in enumerate(requests)]
        try:
            answers = {one["id"]: one for one in json.loads(await self.exchange(json.dumps(asked).encode()))}
        except OSError as error:
            raise ChainError(f"The node behind {self._file} does not answer.") from error
        for number, (method, _) in enumerate(requests):
            if "error" in answers[number]:
                raise ChainError(f"The node refused {method}: {answers[number]['error']['message']}", transient=False)
        return [answers[number].get("result") for number in range(len(requests))]

    async def exchange(self, document: bytes) -> bytes:
        """Return the node's answer to a JSON-RPC document without newlines.

        Raises OSError or TimeoutError without one.
        """
        async with self._connection() as (reader, writer), asyncio.timeout(WITHIN_S):
            writer.write(document + b"\n")
            await writer.drain()
            try:
                return await reader.readuntil(b"\n")
            except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                raise ConnectionError("The node broke off its answer.") from None

    async def close(self) -> None:
        """Close the idle connections."""
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Yield an exclusive connection. It is reused only after a complete exchange."""
        async with self._slots:
            pair = self._take_idle() or await self.connect()
            try:
                yield pair
            except BaseException:
                pair[1].close()
                raise
            self._idle.append(pair)

    def _take_idle(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Return an idle connection that is still open, or None. A restarted node has closed all of them."""
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return None

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a new connection, which the caller closes. Raises OSError when the node does not listen."""
        with _short_path(self._file) as path:
            return await asyncio.open_unix_connection(path, limit=LONGEST_ANSWER)


def answers_on(file: Path, method: str) -> bool:
    """Return whether the node behind the socket answers `method`. Never raises."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as peer, _short_path(file) as path:
        peer.settimeout(PROBE_WITHIN_S)
        peer.connect(path)
        peer.sendall(json.dumps(_request(1, method, [])).encode() + b"\n")
        return b'"result"' in peer.recv(4096)
    return False


@contextmanager
def _short_path(file: Path) -> Iterator[str]:
    """Another path of the file that is short enough for a socket, however deep the file is."""
    folder = os.open(file.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{file.name}"
    finally:
        os.close(folder)


def _request(number: int, method: str, params: Sequence[Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": list(params)}
