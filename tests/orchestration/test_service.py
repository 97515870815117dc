"""A process ends within seconds, by SIGTERM while one of its threads computes, or by an error during an outage of
Prefect.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

BUSY_S = 60.0
ROOM_S = 20.0  # the limit is one second; machines are shared
PROGRAM = f"""
import asyncio, time
from orchestration.service import leave, serve_until_signalled

def compute():
    end = time.monotonic() + {BUSY_S}
    while time.monotonic() < end:
        sum(range(1000))

async def serve():
    asyncio.get_running_loop().call_later(0.5, lambda: print("computing", flush=True))
    await asyncio.to_thread(compute)

serve_until_signalled(serve)
leave()
"""


@pytest.mark.long
def test_a_process_ends_while_a_thread_computes() -> None:
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"computing\n"
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(BUSY_S) == 0
        assert time.monotonic() - began < ROOM_S
    finally:
        process.kill()
        process.communicate()


FAILING = """
from prefect.events import emit_event
from deepgrid.errors import ConfigurationError
from deployments.cli.serving import serve

async def role(name):
    for number in range(200):
        emit_event("test", {"prefect.resource.id": f"test.{number}"})
    raise ConfigurationError("The cluster is gone.")

serve(role, "alpha")
"""


@pytest.mark.long
def test_a_process_ends_by_an_error_while_prefect_is_away() -> None:
    """Python's normal exit waits for Prefect's queues. Each entry may take seconds."""
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections, and never answers
        done = subprocess.run(
            [sys.executable, "-c", FAILING], check=False, capture_output=True, timeout=BUSY_S, text=True,
            env=os.environ | {"PREFECT_API_URL": f"http://127.0.0.1:{silent.getsockname()[1]}/api"},
        )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "dps: The cluster is gone." in done.stderr
