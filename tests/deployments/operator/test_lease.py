"""One operator process per key works; another one stands by, and takes over when the first one dies."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deployments.operator.process import sole_operator

WITHIN_S = 60
HOLD = """
import fcntl, sys, time
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(600)
"""


async def test_the_second_operator_waits_and_takes_over_after_a_kill(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = tmp_path / "key"
    argv = [sys.executable, "-c", HOLD, str(tmp_path / "key.operator")]
    first = subprocess.Popen(argv, stdout=subprocess.PIPE)
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"
        leads = asyncio.Event()

        async def second() -> None:
            async with sole_operator(key):
                leads.set()

        task = asyncio.create_task(second())
        async with asyncio.timeout(WITHIN_S):
            while "standing by" not in caplog.text:
                await asyncio.sleep(0.02)
        assert not leads.is_set()
        first.send_signal(signal.SIGKILL)
        await asyncio.wait_for(task, WITHIN_S)
        assert leads.is_set()
    finally:
        first.kill()
        first.communicate()
