"""A TCP proxy with faults: it refuses, hangs, trickles, cuts answers short, or answers itself.

It has its own thread and event loop, so that blocking and asynchronous tests can use it. The server behind it keeps
running. A mode applies to open connections as well as to new ones.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

HOST = "127.0.0.1"
CHUNK = 2**16


@dataclass(frozen=True)
class Pass:
    """Everything is forwarded."""


@dataclass(frozen=True)
class Down:
    """Open connections are closed and new ones refused."""


@dataclass(frozen=True)
class Hang:
    """Connections are accepted and nothing is forwarded. The next mode forwards what was held back."""


@dataclass(frozen=True)
class Slow:
    """Each chunk waits `delay_s` and is then sent `bytes_at_once` at a time, with pauses of `pause_s`."""

    delay_s: float = 0.2
    bytes_at_once: int = 512
    pause_s: float = 0.005


@dataclass(frozen=True)
class Cut:
    """A connection breaks after this number of bytes of answers from now on. The bytes before that arrive."""

    after_bytes: int


@dataclass(frozen=True)
class Answer:
    """Open connections are closed. Each new one gets these bytes after its complete HTTP request."""

    body: bytes


Mode = Pass | Down | Hang | Slow | Cut | Answer


def http(status: str, body: str = "", headers: str = "") -> Answer:
    """Return an HTTP answer such as `429 Too Many Requests`. `headers` are complete lines that end with CRLF."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
    return Answer(f"{head}{headers}\r\n{body}".encode())


class Proxy:
    """Listens at `port` of loopback in front of `target_port`. It keeps the port until `close`, even while down."""

    def __init__(self, target_port: int, port: int = 0) -> None:
        self.target_port = target_port
        self._keeper = socket.socket()
        self._keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._keeper.bind((HOST, port))
        self.port: int = self._keeper.getsockname()[1]
        self.mode: Mode = Pass()
        self.cuts = 0  # number of connections that `Cut` has broken
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"proxy-{self.port}", daemon=True)
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Event()  # set whenever the mode changes

    def start(self) -> None:
        """Start to serve and forward everything."""
        self._thread.start()
        self.set(Pass())

    def set(self, mode: Mode) -> None:
        """Switch to this mode. Returns when it is in force."""
        self._do(self._set(mode))

    def close(self) -> None:
        """Close all connections and free the port."""
        if self._thread.is_alive():
            self._do(self._set(Down()))
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()
        self._keeper.close()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _set(self, mode: Mode) -> None:
        self.mode = mode
        self._turn.set()
        self._turn = asyncio.Event()
        if isinstance(mode, Down) and self._server is not None:
            self._server.close()
            self._server = None
        if isinstance(mode, Down | Answer):
            links = list(self._links)
            for link in links:
                link.cancel()
            await asyncio.gather(*links, return_exceptions=True)
        if not isinstance(mode, Down) and self._server is None:
            self._server = await asyncio.start_server(self._accept, HOST, self.port, reuse_port=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.current_task()
        assert link is not None
        self._links.add(link)
        try:
            if isinstance(self.mode, Answer):
                await _answer(reader, writer, self.mode.body)
            else:
                await self._join(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        except OSError:
            pass  # either side may close at any time
        finally:
            self._links.discard(link)
            writer.close()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward both directions until both have ended or one broke."""
        far_reader, far_writer = await asyncio.open_connection(HOST, self.target_port)
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(self._pump(reader, far_writer, answers=False))
                directions.create_task(self._pump(far_reader, writer, answers=True))
        except* OSError:
            pass
        finally:
            far_writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        spent, counted = 0, self.mode
        while data := await reader.read(CHUNK):
            while isinstance(self.mode, Hang):
                await self._turn.wait()
            mode = self.mode
            if isinstance(mode, Slow):
                await _trickle(writer, data, mode)
                continue
            if isinstance(mode, Cut) and answers:
                spent, counted = (spent if counted is mode else 0), mode
                await self._write_some(writer, data, mode.after_bytes - spent)
                spent += len(data)
                continue
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    async def _write_some(self, writer: asyncio.StreamWriter, data: bytes, left: int) -> None:
        """Write all bytes, or the first `left` ones and break the connection."""
        writer.write(data[:left])
        await writer.drain()
        if len(data) >= left:
            self.cuts += 1
            raise ConnectionAbortedError


async def _trickle(writer: asyncio.StreamWriter, data: bytes, mode: Slow) -> None:
    await asyncio.sleep(mode.delay_s)
    for first in range(0, len(data), mode.bytes_at_once):
        writer.write(data[first : first + mode.bytes_at_once])
        await writer.drain()
        await asyncio.sleep(mode.pause_s)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> None:
    """Read one request and send one answer, even to a client that sends something else."""
    with suppress(asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        head = await reader.readuntil(b"\r\n\r\n")
        length = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        await reader.readexactly(int(length[0]) if length else 0)
    writer.write(body)
    await writer.drain()
