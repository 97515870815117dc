"""An agent that sends without end occupies neither the supervisor nor the sessions of other jobs."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from deepgrid.provider.tunnels.agent_link import BYTES_PER_S, STRAY_COST, AgentLink
from deepgrid.services.tunnels import tunnel_frames as frames
from deepgrid.services.tunnels.tunnel_frames import Kind
from tests.waiting import until

WITHIN_S = 20.0
FRAMES = 1000  # in one piece
UNKNOWN_STREAM = 77


class Flood:
    """The channel of an agent that sends frames of a stream that never was, and always has more."""

    def __init__(self) -> None:
        frame = frames.pack(Kind.DATA, UNKNOWN_STREAM)
        self._piece = (struct.pack("!I", len(frame)) + frame) * FRAMES
        self.pieces = 0
        self.is_closed = False

    async def read(self) -> bytes:
        self.pieces += 1
        return b"" if self.is_closed else self._piece

    async def write(self, data: bytes) -> None:
        """Take what is sent."""

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
async def flood() -> AsyncIterator[Flood]:
    channel = Flood()
    link = AgentLink(cast(Any, channel))
    async with asyncio.timeout(WITHIN_S):
        yield channel
        link.close()


async def test_an_agent_that_always_has_more_lets_others_run_and_has_a_limit(flood: Flood) -> None:
    most = BYTES_PER_S // (FRAMES * STRAY_COST)
    await until(lambda: flood.pieces > 2)
    for _ in range(20 * most):
        await asyncio.sleep(0)
    assert flood.pieces <= 2 * most
