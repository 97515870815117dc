"""Runs child programs with a timeout, and kills what they started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from typing import IO


class OutOfTime(Exception):
    """The program did not end in time and was killed."""


def run(
    command: list[str],
    *,
    within_s: float,
    env: Mapping[str, str],
    given: bytes | None = None,
    stdout: IO[bytes] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a program without a terminal, in its own process group, which is killed at the end. Raises OutOfTime."""
    process = subprocess.Popen(
        command, env=env, start_new_session=True,
        stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
        stdout=stdout or subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        out, err = process.communicate(given, timeout=max(within_s, 0.1))
    except BaseException as error:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise OutOfTime from None
        raise
    return subprocess.CompletedProcess(command, process.returncode, out or b"", err)
