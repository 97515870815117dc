"""A customer whose connection stalls costs little memory, and ends no session but its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, cast

import pytest

from deepgrid.provider.tunnels.served_tunnel import MOST_QUEUED, ServedTunnel, TunnelBounds
from deepgrid.services.tunnels import tunnel_frames as frames
from deepgrid.services.tunnels.tunnel_frames import MOST_CONTENT, Kind
from tests.waiting import until

PIECES = 100_000  # of one byte each, within the first window


class Stalled:
    """A customer's connection that opens a stream, and takes nothing before its gate is open. It seals nothing."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.sealed: list[bytes] = []
        self.sent: list[bytes] = []
        request = frames.StreamRequest(kind="exec", command=("true",))
        self._said = [frames.pack(Kind.OPEN, 1, request.model_dump_json().encode())]

    async def receive(self) -> bytes:
        if not self._said:
            await asyncio.Event().wait()
        return self._said.pop()

    async def send(self, frame: bytes) -> None:
        await self.gate.wait()
        self.sent.append(frame)

    def seal(self, frame: bytes) -> bytes:
        self.sealed.append(frame)
        return frame

    def open(self, frame: bytes) -> bytes:
        return frame


class Agent:
    """The way to the agent in the job."""

    def __init__(self) -> None:
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.deliver: Callable[[Kind, bytes], None] | None = None
        self.dropped: set[int] = set()

    def add(self, deliver: Callable[[Kind, bytes], None]) -> int:
        self.deliver = deliver
        return 7

    async def send(self, *_: object) -> None:
        """Take a frame."""

    def drop(self, number: int) -> None:
        self.dropped.add(number)


@pytest.fixture
async def parts() -> tuple[Stalled, Agent, asyncio.Task[str]]:
    socket, agent = Stalled(), Agent()
    tunnel = ServedTunnel(cast(Any, agent), cast(Any, socket), cast(Any, socket), TunnelBounds())
    serving = asyncio.create_task(tunnel.serve(time.monotonic() + 600))
    await until(lambda: agent.deliver)
    return socket, agent, serving


async def test_tiny_pieces_are_sent_together(parts: tuple[Stalled, Agent, asyncio.Task[str]]) -> None:
    socket, agent, serving = parts
    assert agent.deliver is not None
    for number in range(PIECES):
        agent.deliver(Kind.DATA if number < PIECES // 2 else Kind.ERRORS, b"%d" % (number % 10))
    agent.deliver(Kind.EXIT, frames.StreamEnd(status=0).model_dump_json().encode())
    socket.gate.set()
    await until(lambda: socket.sent and frames.unpack(socket.sent[-1])[0] is Kind.EXIT)
    agent.over.set_result("the job is over")
    assert await serving == "the job is over"
    found = [frames.unpack(frame) for frame in socket.sent]
    whole = b"".join(content for kind, _, content in found if kind in frames.WITH_DATA)
    assert whole == b"0123456789" * (PIECES // 10)
    assert [kind for kind, *_ in found].index(Kind.ERRORS) <= PIECES // 2 // MOST_CONTENT + 3
    assert len(found) <= PIECES // MOST_CONTENT + 6


async def test_frames_without_end_end_only_the_tunnel_of_their_customer(
    parts: tuple[Stalled, Agent, asyncio.Task[str]],
) -> None:
    socket, agent, serving = parts
    assert agent.deliver is not None
    for _ in range(MOST_QUEUED + 2):
        agent.deliver(Kind.WINDOW, frames.pack_count(0))
    socket.gate.set()
    assert await serving == "the customer does not read"
    assert not agent.over.done()


@pytest.mark.parametrize("reads_late", [False, True])
async def test_a_customer_that_stops_reading_as_the_job_ends_loses_nothing(
    parts: tuple[Stalled, Agent, asyncio.Task[str]], reads_late: bool
) -> None:
    """A message that was sealed and not sent leaves a gap in the numbers. The customer once took it for tampering."""
    socket, agent, serving = parts
    assert agent.deliver is not None
    sent = [bytes([number]) * MOST_CONTENT for number in range(6)]
    for content in sent:
        agent.deliver(Kind.DATA, content)
    await until(lambda: socket.sealed)
    agent.over.set_result("the job is over")
    if reads_late:
        await until(lambda: agent.dropped)
    socket.gate.set()
    assert await serving == "the job is over"
    assert socket.sent == socket.sealed
    found = [frames.unpack(frame) for frame in socket.sent]
    assert [content for kind, _, content in found if kind is Kind.DATA] == sent
    assert found[-1] == (Kind.END, 0, b"the job is over")
