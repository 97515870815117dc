"""Many tunnels of one supervisor in one WebSocket to the services: what is ready goes in one message.

The WebSocket opens as that of a single tunnel, with a token, and names `SUBPROTOCOL`. Services that know it answer with
it. Then the supervisor joins further tunnels by their tokens. Each direction of a tunnel has a window, so a customer
that does not read holds up no other one.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum

from deepgrid.services.admission.limits import Buckets, Rate
from deepgrid.services.tunnels import tunnel_frames as frames
from deepgrid.services.tunnels.frame_connection import MOST_AT_ONCE, MOST_NUMBER, FrameConnection
from deepgrid.services.tunnels.secure_channel import MAX_MESSAGE
from deepgrid.services.tunnels.tunnel_frames import FIRST_WINDOW, GRANT, BrokenFrame
from deepgrid.services.tunnels.tunnel_socket import TunnelSocket

SUBPROTOCOL = "deepgrid.tunnels.1"
FIRST = 1  # the number of the tunnel whose token opened the WebSocket
# Only the services wait this long between messages to a supervisor. So keys of many customers, and their echoes, go
# together.
PACE_S = 0.01
GATHER_S = 0.002
MESSAGE_COST = 64  # bytes that each message takes of a window besides its content: tiny ones need memory, too
JOIN_WITHIN_S = 5.0  # then the supervisor tries a WebSocket of its own for the tunnel
MOST_REFUSED = 1000  # tunnels that join at once with an unknown token
REFUSED_PER_S = 20  # in the long run: another process of the services may have given the tokens out


class Part(IntEnum):
    """What a frame says about its tunnel."""

    JOIN = 1  # supervisor: the token of a further tunnel
    JOINED = 2  # services: its token was good
    MESSAGE = 3  # a message of the tunnel
    WINDOW = 4  # 4 bytes: how many more bytes of messages may be sent
    LEAVE = 5  # the tunnel is over on this side


_OF_ONE = frozenset(Part) - {Part.JOIN}  # about a tunnel that has joined

Admit = Callable[[str, TunnelSocket], bool]


def admit_none(_token: str, _tunnel: TunnelSocket) -> bool:
    """Admit no tunnel: only the services do."""
    return False


class Multiplexer(FrameConnection):
    """The tunnels of one WebSocket. It is over with its last tunnel."""

    def __init__(
        self,
        socket: TunnelSocket,
        admit: Admit = admit_none,
        *,
        gather_s: float = GATHER_S,
        pace_s: float = 0.0,
        join_within_s: float = JOIN_WITHIN_S,
    ) -> None:
        """`admit` starts to serve the tunnel with this token, and returns whether there is one."""
        super().__init__(socket.receive, socket.send, MAX_MESSAGE, gather_s=gather_s, pace_s=pace_s)
        self._socket, self._admit, self._join_within_s = socket, admit, join_within_s
        self._closing: asyncio.Task[None] | None = None
        self._queues: OrderedDict[int, deque[tuple[Part, bytes]]] = OrderedDict()  # the next tunnel first
        self._last = FIRST
        self._refusals = Buckets(Rate(REFUSED_PER_S, MOST_REFUSED))
        self.first = _Tunnel(self, FIRST)
        self._tunnels = {FIRST: self.first}

    async def join(self, token: str) -> TunnelSocket | None:
        """Return the tunnel with this token; None if the services do not know it, or do not answer in time."""
        if self.over.done():
            return None
        self._last = self._last % MOST_NUMBER + 1
        tunnel = self._tunnels[self._last] = _Tunnel(self, self._last)
        self._put(Part.JOIN, self._last, token.encode())
        with suppress(TimeoutError):
            async with asyncio.timeout(self._join_within_s):
                if await tunnel.is_joined():
                    return tunnel
        await tunnel.close()
        return None

    def queue(self, part: Part, number: int, content: bytes = b"") -> None:
        """Send a frame of a tunnel after its earlier ones. The tunnels take turns, and its window limits its queue."""
        self._queues.setdefault(number, deque()).append((part, content))
        self._wanted.set()

    def _collect(self) -> bool:
        while self._queues and len(self._unsent) < MOST_AT_ONCE:
            number, waiting = self._queues.popitem(last=False)
            part, content = waiting.popleft()
            self._put(part, number, content)
            if waiting:
                self._queues[number] = waiting  # behind the other tunnels
        return bool(self._queues)

    def grant(self, number: int, count: int) -> None:
        """Allow the other side to send more."""
        self._put(Part.WINDOW, number, frames.pack_count(count))

    @property
    def tunnels(self) -> int:
        """How many tunnels are open."""
        return len(self._tunnels)

    def leave(self, number: int) -> None:
        """End a tunnel."""
        if self._forget(number):
            self.queue(Part.LEAVE, number)

    def _forget(self, number: int) -> bool:
        tunnel = self._tunnels.pop(number, None)
        if tunnel is not None:
            tunnel.end()
        return tunnel is not None

    async def close(self) -> None:
        """End all tunnels, and close the WebSocket."""
        self._end("this side closed it")
        if self._closing is not None:
            await self._closing

    def _ended(self) -> None:
        for number in list(self._tunnels):
            self._forget(number)
        self._closing = asyncio.create_task(self._socket.close())

    def _received(self, kind: int, number: int, content: bytes) -> None:
        tunnel = self._tunnels.get(number)
        if kind == Part.JOIN:
            if tunnel is not None:
                raise BrokenFrame("the number of a tunnel is used twice")
            self._let_in(number, content)
        elif kind not in _OF_ONE:
            raise BrokenFrame(f"a frame has the kind {kind}")
        elif tunnel is not None:  # else it is over meanwhile
            tunnel.take(kind, content)
        if kind == Part.LEAVE:
            self._forget(number)
            self._queues.pop(number, None)
            if not self._tunnels:
                self._end("no tunnel is left")

    def _let_in(self, number: int, token: bytes) -> None:
        tunnel = _Tunnel(self, number)
        if self._admit(token.decode("ascii", "replace"), tunnel):
            self._tunnels[number] = tunnel
            self._put(Part.JOINED, number)
            return
        self._put(Part.LEAVE, number)
        if not self._refusals.take("unknown"):
            raise BrokenFrame("too many tunnels join with an unknown token")


class _Tunnel:
    """One tunnel of a multiplexer, as a socket."""

    def __init__(self, multiplexer: Multiplexer, number: int) -> None:
        self._multiplexer, self._number = multiplexer, number
        self._messages: deque[bytes] = deque()
        self._arrived = 0  # bytes that wait here, or were not granted again
        self._taken = 0  # bytes since the last WINDOW
        self._credit = FIRST_WINDOW
        self._changed, self._credited = asyncio.Event(), asyncio.Event()
        self._joined: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._is_over = False

    async def is_joined(self) -> bool:
        """Return whether the services let this tunnel in, once they have answered."""
        return await self._joined

    async def send(self, data: bytes) -> None:
        cost = len(data) + MESSAGE_COST
        while self._credit < cost and not self._is_over:
            self._credited.clear()
            await self._credited.wait()
        if self._is_over:
            raise ConnectionResetError("the other side has left")
        self._credit -= cost
        self._multiplexer.queue(Part.MESSAGE, self._number, data)

    async def receive(self) -> bytes:
        while not self._messages:
            if self._is_over:
                return b""
            self._changed.clear()
            await self._changed.wait()
        message = self._messages.popleft()
        cost = len(message) + MESSAGE_COST
        self._arrived -= cost
        self._taken += cost
        if self._taken >= GRANT and not self._is_over:
            self._multiplexer.grant(self._number, self._taken)
            self._taken = 0
        return message

    async def close(self) -> None:
        self._multiplexer.leave(self._number)

    def take(self, kind: int, content: bytes) -> None:
        """Take a frame of the other side. Raises BrokenFrame."""
        if kind == Part.MESSAGE:
            self._arrived += len(content) + MESSAGE_COST
            if not content or self._arrived + self._taken > FIRST_WINDOW:
                raise BrokenFrame("an empty message, or more than the window allows")
            self._messages.append(content)
            self._changed.set()
        elif kind == Part.WINDOW:
            self._credit += frames.count_in(content)
            if self._credit > FIRST_WINDOW:
                raise BrokenFrame("the window is too large")
            self._credited.set()
        elif kind == Part.JOINED and not self._joined.done():
            self._joined.set_result(True)

    def end(self) -> None:
        """Note that it is over. What has arrived can still be received."""
        self._is_over = True
        self._changed.set()
        self._credited.set()
        if not self._joined.done():
            self._joined.set_result(False)
