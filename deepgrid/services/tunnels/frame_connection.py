"""A connection of bytes that carries frames of many streams: the line to an agent, and the multiplexer of tunnels.

A frame is its length (4 bytes), a kind (1 byte), a stream (4 bytes) and a content. Every message, and every passage to
a thread, costs as much as 100 frames. So what is ready within a moment goes together.
"""

from __future__ import annotations

import asyncio
import struct
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress

from deepgrid.errors import GridError
from deepgrid.services.tunnels.tunnel_frames import HEAD, BrokenFrame

MOST_UNSENT = 512 * 1024  # bytes; then the senders wait
MOST_AT_ONCE = 48 * 1024  # bytes of one write, which may be one message
LARGE_WRITE = 8 * 1024  # bytes; the next write does not wait
MOST_NUMBER = 2**32 - 1

Read = Callable[[], Awaitable[bytes]]
Write = Callable[[bytes], Awaitable[None]]

_LENGTH = struct.Struct("!I")
_FRAME = struct.Struct("!IBI")


class FrameConnection(ABC):
    """Sends and receives frames. `over` is done when the connection has ended; its result says why."""

    OTHER_SIDE = "the other side"

    def __init__(self, read: Read, write: Write, most_content: int, *, gather_s: float = 0.0, pace_s: float) -> None:
        """`read` returns no bytes at the end. `write` waits while the other side does not read.

        A small write waits `gather_s` for frames that follow the first one, and the next write waits `pace_s`.
        """
        self._read_bytes, self._write_bytes = read, write
        self._gather_s, self._pace_s = gather_s, pace_s
        self._most_bytes = HEAD.size + most_content
        self._unsent = bytearray()
        self._written = asyncio.Event()
        self._wanted = asyncio.Event()
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._write())]

    @abstractmethod
    def _received(self, kind: int, number: int, content: bytes) -> None:
        """Take a frame of the other side. Raises BrokenFrame."""

    @abstractmethod
    def _ended(self) -> None:
        """Release what belongs to the connection. `over` is done."""

    async def _why_ended(self) -> str:
        """Return why the other side has ended the connection."""
        return "the other side has left"

    async def _let_others_run(self, count: int) -> None:
        """Pause after `count` received bytes. A connection that always has more must not occupy the process."""
        await asyncio.sleep(0)

    def _put(self, kind: int, number: int, content: bytes = b"") -> None:
        """Send a frame without waiting."""
        self._unsent += _FRAME.pack(HEAD.size + len(content), kind, number)
        self._unsent += content
        self._wanted.set()

    def _collect(self) -> bool:
        """Add to what is unsent, up to one write, what waits elsewhere for its turn. Returns whether more waits."""
        return False

    async def _room(self) -> None:
        """Wait while the other side does not read."""
        while len(self._unsent) > MOST_UNSENT and not self.over.done():
            self._written.clear()
            await self._written.wait()

    def _end(self, why: str) -> None:
        if self.over.done():
            return
        self.over.set_result(why)
        self._written.set()
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        self._ended()

    async def _write(self) -> None:
        why = "it was cut off"
        try:
            while True:
                await self._wanted.wait()
                more = self._collect()
                if self._gather_s and len(self._unsent) < LARGE_WRITE:
                    await asyncio.sleep(self._gather_s)
                    more = self._collect()
                data = bytes(self._unsent[:MOST_AT_ONCE])
                del self._unsent[:MOST_AT_ONCE]
                if not self._unsent and not more:
                    self._wanted.clear()
                self._written.set()
                await self._write_bytes(data)
                if len(data) < LARGE_WRITE:
                    await asyncio.sleep(self._pace_s)
        except (GridError, ConnectionError) as error:
            why = _reason(error)
        finally:
            with suppress(RuntimeError):
                self._end(why)

    async def _read(self) -> None:
        buffered = bytearray()
        why = "it was cut off"
        try:
            while piece := await self._read_bytes():
                buffered += piece
                self._take(buffered)
                if self.over.done():
                    return
                await self._let_others_run(len(piece))
            why = await self._why_ended()
        except BrokenFrame as fault:
            why = f"{self.OTHER_SIDE} broke the protocol: {fault}"
        except (GridError, ConnectionError) as error:
            why = _reason(error)
        finally:
            with suppress(RuntimeError):
                self._end(why)

    def _take(self, buffered: bytearray) -> None:
        """Deliver all complete frames, up to the one that ends the connection. Raises BrokenFrame."""
        place = 0
        while not self.over.done() and len(buffered) - place >= _FRAME.size:
            length, kind, number = _FRAME.unpack_from(buffered, place)
            if not HEAD.size <= length <= self._most_bytes:
                raise BrokenFrame(f"a frame has {length} bytes")
            end = place + _LENGTH.size + length
            if len(buffered) < end:
                break
            content = bytes(buffered[place + _FRAME.size : end])
            place = end
            self._received(kind, number, content)
        del buffered[:place]


def _reason(error: GridError | ConnectionError) -> str:
    return error.message.rstrip(".") if isinstance(error, GridError) else "the connection broke"
