"""A process hears SIGTERM while one of its threads computes, as the meta-scheduler's does for seconds."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

BUSY_S = 60.0
ROOM_S = 20.0  # the limit is one second; machines are shared
PROGRAM = f"""
import asyncio, time
from runtime.service import leave, serve_until_signalled

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
