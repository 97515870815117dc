"""Runs child programs with a timeout, and kills what they started."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from subprocess import DEVNULL, PIPE, CompletedProcess, Popen, TimeoutExpired
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
) -> CompletedProcess[bytes]:
    """Run a program without a terminal, in its own process group, which is killed at the end. Raises OutOfTime."""
    stdin = DEVNULL if given is None else PIPE
    process = Popen(command, env=env, start_new_session=True, stdin=stdin, stdout=stdout or PIPE, stderr=PIPE)
    try:
        out, err = process.communicate(given, timeout=max(within_s, 0.1))
    except BaseException as error:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, TimeoutExpired):
            raise OutOfTime from None
        raise
    return CompletedProcess(command, process.returncode, out or b"", err)
