"""Helpers of the tests of the one-machine grid: waiting, and `./run` as a command."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path


def eventually(holds: Callable[[], bool], within_s: float = 30.0) -> bool:
    deadline = time.monotonic() + within_s
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.02)
    return holds()


REPOSITORY = Path(__file__).resolve().parents[2]


def run(*args: str, timeout_s: float = 120, **env: str) -> subprocess.CompletedProcess[str]:
    command = [str(REPOSITORY / "run"), *args]
    clean = {"PATH": os.environ["PATH"], **env}
    return subprocess.run(command, env=clean, capture_output=True, text=True, cwd="/", check=False, timeout=timeout_s)
