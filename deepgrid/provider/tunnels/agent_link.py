"""The line to the agent in one running job, which serves all sessions of this job.

The agent runs as the job's account, so its answers are a stranger's: each frame is checked, and what the agent sends
beyond a window ends the line.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from contextlib import suppress

from deepgrid.errors import GridError, SlurmError
from deepgrid.services.tunnels.tunnel_frames import MAX_FRAME, BrokenFrame, Kind, pack, unpack
from deepgrid.slurm.ssh.byte_channel import ByteChannel

READY_WITHIN_S = 60.0
MOST_UNSENT = 512 * 1024  # bytes in flight to the agent; beyond that, its senders wait
LONGEST_STREAM = 2**32
# Every passage to a thread and through SSH costs as much as 100 frames. Typing and its echo are sent at once. Data that
# follows within this time is sent together. Large pieces do not wait.
PACE_S = 0.01
LARGE_PIECE = 8 * 1024

Deliver = Callable[[Kind, bytes], None]

_LENGTH = struct.Struct("!I")


class AgentLink:
    """Streams of one agent. `over` is done when the agent has ended; its result says why."""

    def __init__(self, channel: ByteChannel) -> None:
        self._channel = channel
        self._routes: dict[int, Deliver] = {}
        self._last = 0
        self._unsent = bytearray()
        self._written = asyncio.Event()
        self._wanted = asyncio.Event()
        self._ready = asyncio.Event()
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._write())]

    async def ready(self) -> None:
        """Return when the agent serves. Raises SlurmError, with what Slurm said, if it does not."""
        said = "it did not answer in time"
        with suppress(TimeoutError):
            async with asyncio.timeout(READY_WITHIN_S):
                await self._ready.wait()
        if self.over.done():
            said = self.over.result()
        if self.over.done() or not self._ready.is_set():
            raise SlurmError(f"Slurm starts no step for sessions in this job: {said}.")

    @property
    def streams(self) -> int:
        """How many streams are open."""
        return len(self._routes)

    def add(self, deliver: Deliver) -> int:
        """Return the number of a new stream, whose frames go to `deliver`."""
        self._last = self._last % (LONGEST_STREAM - 1) + 1
        self._routes[self._last] = deliver
        return self._last

    def drop(self, number: int) -> None:
        """Forget a stream. The agent ends it."""
        if self._routes.pop(number, None) is not None:
            self._put(pack(Kind.CLOSE, number))

    async def send(self, kind: Kind, number: int, content: bytes = b"") -> None:
        """Send a frame of a stream. Waits while the agent does not read."""
        self._put(pack(kind, number, content))
        while len(self._unsent) > MOST_UNSENT and not self.over.done():
            self._written.clear()
            await self._written.wait()

    def close(self) -> None:
        """End the agent, and with it all that it started."""
        self._end("the supervisor ended it")

    def _put(self, frame: bytes) -> None:
        self._unsent += _LENGTH.pack(len(frame)) + frame
        self._wanted.set()

    def _end(self, why: str) -> None:
        if self.over.done():
            return
        self.over.set_result(why)
        self._written.set()
        self._ready.set()
        self._routes.clear()
        self._channel.close()
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()

    async def _write(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            data = bytes(self._unsent)
            self._unsent.clear()
            self._written.set()
            try:
                await self._channel.write(data)
            except GridError as error:
                self._end(error.message.rstrip("."))
                return
            await _pace(data)

    async def _read(self) -> None:
        buffered = bytearray()
        why = "the job is over, or its node ended the session"
        try:
            while piece := await self._channel.read():
                buffered += piece
                self._take(buffered)
                await _pace(piece)
            if not self._ready.is_set():  # it never served
                why = await self._channel.complaint() or why
        except BrokenFrame as fault:
            why = f"its node broke the protocol: {fault}"
        except GridError as error:
            why = error.message.rstrip(".")
        finally:
            with suppress(RuntimeError):
                self._end(why)

    def _take(self, buffered: bytearray) -> None:
        """Deliver all complete frames. Raises BrokenFrame."""
        place = 0
        while len(buffered) - place >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffered, place)
            if length > MAX_FRAME:
                raise BrokenFrame(f"a frame has {length} bytes")
            end = place + _LENGTH.size + length
            if len(buffered) < end:
                break
            kind, number, content = unpack(bytes(buffered[place + _LENGTH.size : end]))
            place = end
            deliver = self._routes.get(number)
            if number == 0:
                self._ready.set()
            elif deliver is not None:
                if kind is Kind.EXIT:
                    del self._routes[number]
                deliver(kind, content)
        del buffered[:place]


async def _pace(piece: bytes) -> None:
    if len(piece) < LARGE_PIECE:
        await asyncio.sleep(PACE_S)
