"""Channels of bytes over several SSH connections of one login: each connection waits for itself only."""

from __future__ import annotations

import asyncio
import socket
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deepgrid.errors import SlurmUnreachable
from deepgrid.slurm.ssh.byte_channel import ByteChannel
from deepgrid.slurm.ssh.ssh_transport import Transport
from tests.waiting import until

WITHIN_S = 10.0


class Channel:
    """A channel of a connection that takes nothing before its gate is open."""

    def __init__(self, transport: Transport) -> None:
        self.in_buffer = SimpleNamespace(set_event=lambda _: None)
        self.out_window_size = 2**16
        self.gate, self.is_writing, self.written = threading.Event(), False, b""
        self._transport = transport

    def get_transport(self) -> Transport:
        return self._transport

    def settimeout(self, _: float | None) -> None:
        """Note how long calls may block."""

    def sendall(self, data: bytes) -> None:
        self.is_writing = True
        assert self.gate.wait(WITHIN_S)
        self.written += data

    def close(self) -> None:
        self.gate.set()


def _transport() -> Transport:
    return Transport(socket.socketpair()[0])


async def test_a_connection_that_stalls_holds_up_no_other_one() -> None:
    """A key exchange, or a path that is dead, blocks each write for half a minute."""
    stalled, working = Channel(_transport()), Channel(_transport())
    working.gate.set()
    first = await ByteChannel.open(lambda: cast(Any, stalled))
    second = await ByteChannel.open(lambda: cast(Any, working))
    async with asyncio.timeout(WITHIN_S):
        writing = asyncio.create_task(first.write(b"late"))
        await until(lambda: stalled.is_writing)
        await second.write(b"at once")
        assert (stalled.written, working.written) == (b"", b"at once")
        stalled.gate.set()
        await writing
    assert stalled.written == b"late"
    for channel in (stalled, working):
        channel.get_transport().close()


async def test_a_write_to_a_closed_connection_is_an_error_that_passes() -> None:
    channel = Channel(_transport())
    stream = await ByteChannel.open(lambda: cast(Any, channel))
    channel.get_transport().close()
    with pytest.raises(SlurmUnreachable):
        await stream.write(b"too late")
