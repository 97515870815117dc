"""The line to the agent in one running job, which serves all sessions of this job.

The agent runs as the job's account, so its answers are a stranger's: each frame is checked, and what the agent sends
beyond a window ends the line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from deepgrid.errors import SlurmError
from deepgrid.services.admission.limits import Pace
from deepgrid.services.tunnels.frame_connection import MOST_NUMBER, FrameConnection
from deepgrid.services.tunnels.tunnel_frames import MOST_CONTENT, BrokenFrame, Kind
from deepgrid.slurm.ssh.byte_channel import ByteChannel

READY_WITHIN_S = 60.0
BYTES_PER_S = 64 * 1024 * 1024  # of one agent: what all sessions of a job may have together
STRAY_COST = 2048  # bytes that a frame of an unknown stream counts as: it takes time and moves nothing
PACE_S = 0.005  # half of the services' pace: what they send together is sent at once

Deliver = Callable[[Kind, bytes], None]


class AgentLink(FrameConnection):
    """Streams of one agent. `over` is done when the agent has ended; its result says why."""

    OTHER_SIDE = "its node"

    def __init__(self, channel: ByteChannel) -> None:
        super().__init__(channel.read, channel.write, MOST_CONTENT, pace_s=PACE_S)
        self._channel = channel
        self._routes: dict[int, Deliver] = {}
        self._last = 0
        self._pace = Pace(BYTES_PER_S, BYTES_PER_S)
        self._strays = 0  # frames since the last pause
        self._ready = asyncio.Event()

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
        self._last = self._last % MOST_NUMBER + 1
        self._routes[self._last] = deliver
        return self._last

    def drop(self, number: int) -> None:
        """Forget a stream. The agent ends it."""
        if self._routes.pop(number, None) is not None:
            self._put(Kind.CLOSE, number)

    async def send(self, kind: Kind, number: int, content: bytes = b"") -> None:
        """Send a frame of a stream. Waits while the agent does not read."""
        self._put(kind, number, content)
        await self._room()

    def close(self) -> None:
        """End the agent, and with it all that it started."""
        self._end("the supervisor ended it")

    def _ended(self) -> None:
        self._ready.set()
        self._routes.clear()
        self._channel.close()

    async def _why_ended(self) -> str:
        if not self._ready.is_set() and (said := await self._channel.complaint()):  # it never served
            return said
        return "the job is over, or its node ended the session"

    def _received(self, kind: int, number: int, content: bytes) -> None:
        try:
            known = Kind(kind)
        except ValueError:
            raise BrokenFrame(f"a frame has the kind {kind}") from None
        deliver = self._routes.get(number)
        if number == 0:
            self._ready.set()
        elif deliver is not None:
            if known is Kind.EXIT:
                del self._routes[number]
            deliver(known, content)
        else:  # its session has ended meanwhile, or never was
            self._strays += 1

    async def _let_others_run(self, count: int) -> None:
        await super()._let_others_run(count)
        count += STRAY_COST * self._strays
        self._strays = 0
        await self._pace.wait(count)
