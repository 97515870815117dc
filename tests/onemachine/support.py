"""Helpers of the tests of the one-machine grid: `./run` as a command."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def run(*args: str, timeout_s: float = 120, **env: str) -> subprocess.CompletedProcess[str]:
    command = [str(REPOSITORY / "run"), *args]
    clean = {"PATH": os.environ["PATH"], **env}
    return subprocess.run(command, env=clean, capture_output=True, text=True, cwd="/", check=False, timeout=timeout_s)
