"""One tunnel of a customer, as the supervisor serves it: between the services' WebSocket and the agent in the job."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass, field

from deepgrid.provider.tunnels.agent_link import AgentLink
from deepgrid.services.admission.limits import Pace
from deepgrid.services.tunnels import tunnel_frames as frames
from deepgrid.services.tunnels.secure_channel import SealedChannel, TunnelBroken
from deepgrid.services.tunnels.tunnel_frames import (
    FIRST_WINDOW,
    MOST_CONTENT,
    MOST_WINDOW,
    WITH_DATA,
    BrokenFrame,
    Kind,
)
from deepgrid.services.tunnels.tunnel_socket import TunnelSocket

CHECK_S = 5.0  # between checks whether the tunnel is idle or too old
MOST_QUEUED = 8192  # frames of a customer that does not read; the windows limit their bytes


@dataclass(frozen=True)
class TunnelBounds:
    """Limits of one tunnel. Times are seconds."""

    streams: int = 64  # commands and connections at once
    idle_s: float = 3600.0  # without a byte in either direction
    bytes_per_s: int = 4 * 1024 * 1024  # in each direction, in the long run
    burst_bytes: int = 1024 * 1024


@dataclass(slots=True)
class _Stream:
    """A stream of the customer, and its number at the agent. Credits are bytes that may still come."""

    number: int = 0
    from_customer: int = FIRST_WINDOW
    from_job: int = FIRST_WINDOW


@dataclass(slots=True)
class _Queued:
    """A frame that waits for the customer's connection. Data that follow of the same stream are added to it."""

    kind: Kind
    number: int
    content: bytearray

    def takes(self, kind: Kind, number: int, content: bytes) -> bool:
        if (kind, number) != (self.kind, self.number) or kind not in WITH_DATA:
            return False
        return len(self.content) + len(content) <= MOST_CONTENT

    @property
    def frame(self) -> bytes:
        return frames.pack(self.kind, self.number, bytes(self.content))


@dataclass(slots=True)
class Traffic:
    """What a tunnel has carried: bytes of data to the job and from it, and its streams by kind."""

    to_job: int = 0
    from_job: int = 0
    opened: dict[str, int] = field(default_factory=dict)


class ServedTunnel:
    """Carries frames until one side leaves, the job ends, or a limit is reached."""

    def __init__(self, link: AgentLink, socket: TunnelSocket, channel: SealedChannel, bounds: TunnelBounds) -> None:
        self._link, self._socket, self._channel, self._bounds = link, socket, channel, bounds
        self._streams: dict[int, _Stream] = {}
        self._queue: deque[_Queued] = deque()
        self._queued = asyncio.Event()
        self._overfull: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._is_ending = False  # what is left is sent, and nothing is added
        self._active_at = time.monotonic()
        self.traffic = Traffic()

    async def serve(self, until: float) -> str:
        """Serve at most until this time (monotonic seconds). Returns why the tunnel is over."""
        reading, writing = asyncio.create_task(self._read()), asyncio.create_task(self._write())
        try:
            why = await self._first_end({reading, writing, self._link.over, self._overfull}, until)
            reading.cancel()
            self._drop_streams()
            await self._say_goodbye(writing, why)
        finally:
            for task in (reading, writing):
                task.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)
            self._drop_streams()
        return why

    async def _first_end(self, ends: set[asyncio.Future[str]], until: float) -> str:
        while True:
            done, _ = await asyncio.wait(ends, timeout=CHECK_S, return_when=asyncio.FIRST_COMPLETED)
            now = time.monotonic()
            if done:
                return next(iter(done)).result()
            if now - self._active_at > self._bounds.idle_s:
                return f"it was idle for {self._bounds.idle_s / 60:.0f} minutes"
            if now > until:
                return "the session key has ended"

    def _drop_streams(self) -> None:
        for stream in self._streams.values():
            self._link.drop(stream.number)

    async def _say_goodbye(self, writing: asyncio.Task[str], why: str) -> None:
        """Let the writer send what is left, and then END. A sealed message has a number, so none may be left out."""
        self._is_ending = True
        self._queue.append(_Queued(Kind.END, 0, bytearray(why.encode()[:500])))
        self._queued.set()
        await asyncio.wait({writing}, timeout=CHECK_S)

    async def _read(self) -> str:
        """Handle the customer's frames. Returns why it ends."""
        pace = Pace(self._bounds.bytes_per_s, self._bounds.burst_bytes)
        try:
            while sealed := await self._socket.receive():
                kind, number, content = frames.unpack(self._channel.open(sealed))
                if kind is Kind.DATA:
                    self._active_at = time.monotonic()
                    self.traffic.to_job += len(content)
                    await pace.wait(len(content))
                await self._handle(kind, number, content)
        except (BrokenFrame, TunnelBroken) as fault:
            return f"the customer's side broke the protocol: {fault}"
        return "the customer left"

    async def _handle(self, kind: Kind, number: int, content: bytes) -> None:
        if kind is Kind.OPEN:
            await self._open(number, content)
            return
        stream = self._streams.get(number)
        if stream is None:  # it ended meanwhile
            return
        match kind:
            case Kind.DATA:
                stream.from_customer -= len(content)
                if stream.from_customer < 0:
                    raise BrokenFrame("more data than the window allows")
            case Kind.WINDOW:
                stream.from_job += frames.count_in(content)
                if stream.from_job > MOST_WINDOW:
                    raise BrokenFrame("the window is too large")
            case Kind.RESIZE:
                frames.size_in(content)
            case Kind.EOF | Kind.CLOSE:
                content = b""
            case _:
                raise BrokenFrame(f"a customer sends no {kind.name}")
        await self._link.send(kind, stream.number, content)

    async def _open(self, number: int, content: bytes) -> None:
        request = frames.request_in(content)
        if number in self._streams or not number:
            raise BrokenFrame("the number of a stream is used twice")
        if len(self._streams) >= self._bounds.streams:
            end = frames.StreamEnd(error=f"a session has at most {self._bounds.streams} connections at once")
            self._put(Kind.EXIT, number, end.model_dump_json().encode())
            return
        kinds = self.traffic.opened
        kinds[request.kind] = kinds.get(request.kind, 0) + 1
        self._streams[number] = stream = _Stream()
        stream.number = self._link.add(lambda kind, content: self._deliver(number, stream, kind, content))
        await self._link.send(Kind.OPEN, stream.number, request.model_dump_json().encode())

    def _deliver(self, number: int, stream: _Stream, kind: Kind, content: bytes) -> None:
        """Take a frame of the agent. Raises BrokenFrame, which ends the agent."""
        if kind in WITH_DATA:
            stream.from_job -= len(content)
            if stream.from_job < 0:
                raise BrokenFrame("more data than the window allows")
            self._active_at = time.monotonic()
            self.traffic.from_job += len(content)
        elif kind is Kind.WINDOW:
            stream.from_customer += frames.count_in(content)
            if stream.from_customer > MOST_WINDOW:
                raise BrokenFrame("the window is too large")
        elif kind is Kind.EXIT:
            self._streams.pop(number, None)
            content = frames.end_in(content).model_dump_json().encode()
        elif kind is not Kind.EOF:
            raise BrokenFrame(f"a job sends no {kind.name}")
        self._put(kind, number, content)

    def _put(self, kind: Kind, number: int, content: bytes) -> None:
        if self._queue and self._queue[-1].takes(kind, number, content):
            self._queue[-1].content += content
        elif len(self._queue) < MOST_QUEUED:
            self._queue.append(_Queued(kind, number, bytearray(content)))
        elif not self._overfull.done():
            self._overfull.set_result("the customer does not read")  # only this customer's tunnel ends
        self._queued.set()

    async def _write(self) -> str:
        """Send what is queued, up to END. The windows limit what a slow customer keeps here."""
        pace = Pace(self._bounds.bytes_per_s, self._bounds.burst_bytes)
        try:
            while True:
                await self._queued.wait()
                self._queued.clear()
                while self._queue:
                    queued = self._queue.popleft()
                    if not self._is_ending:
                        await pace.wait(len(queued.content))
                    await self._socket.send(self._channel.seal(queued.frame))
                    if queued.kind is Kind.END:
                        return "all is sent"
        except ConnectionError:
            return "the customer left"
