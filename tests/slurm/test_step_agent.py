"""The agent of sessions by itself: a process whose output keeps the borders of its writes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from deepgrid.services.tunnels.tunnel_frames import Kind
from deepgrid.slurm.remote.step_streams import HEAD
from deepgrid.slurm.submit.overlap_step import _AGENT

WITHIN_S = 60.0
PIECES = 400
GATHER_S = 0.004  # as in step_agent.py


class Agent:
    """A running agent."""

    def __init__(self) -> None:
        self._output, out = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._output.settimeout(WITHIN_S)
        argv = [sys.executable, "-I", "-S", "-c", _AGENT]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=out)
        out.close()
        assert self.written()[0][0] is Kind.EXIT, "it is not ready"

    def send(self, kind: Kind, number: int, content: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(HEAD.pack(5 + len(content), kind, number) + content)
        self.process.stdin.flush()

    def run(self, number: int, *command: str) -> None:
        self.send(Kind.OPEN, number, json.dumps({"kind": "exec", "command": command}).encode())

    def written(self) -> list[tuple[Kind, int, bytes]]:
        """Return the frames of the next write."""
        data, found = self._output.recv(2**20), []
        while data:
            size, kind, number = HEAD.unpack_from(data)
            found.append((Kind(kind), number, data[HEAD.size : 4 + size]))
            data = data[4 + size :]
        return found

    def close(self) -> None:
        self._output.close()
        with suppress(OSError):
            assert self.process.stdin is not None
            self.process.stdin.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def agent() -> Iterator[Agent]:
    agent = Agent()
    try:
        yield agent
    finally:
        agent.close()


def test_small_outputs_go_together(agent: Agent) -> None:
    """Each write passes many processes. So the agent writes no more often than its pace allows."""
    program = f"import os, time\nfor _ in range({PIECES}):\n    os.write(1, b'x')\n    time.sleep(0.0005)"
    began = time.monotonic()
    agent.run(1, sys.executable, "-I", "-S", "-c", program)
    shown, writes = b"", 0
    while len(shown) < PIECES:
        shown += b"".join(content for kind, _, content in agent.written() if kind is Kind.DATA)
        writes += 1
    assert shown == b"x" * PIECES
    assert writes <= (time.monotonic() - began) / GATHER_S + 2


def test_a_command_that_ends_is_told_at_once_among_silent_ones(agent: Agent) -> None:
    """The agent looks at all processes when one has ended, and otherwise once per second."""
    for number in range(1, 20):
        agent.run(number, "sleep", "600")
    for number in range(20, 40):
        agent.run(number, "true")
    ended = set[int]()
    while len(ended) < 20:
        ended |= {number for kind, number, _ in agent.written() if kind is Kind.EXIT}
    assert ended == set(range(20, 40))
