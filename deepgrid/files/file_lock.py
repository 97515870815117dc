"""A lock between the processes, threads and tasks of one machine. The kernel drops it when its holder dies."""

from __future__ import annotations

import asyncio
import fcntl
import math
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from deepgrid.errors import ConfigurationError, GridError

POLL_S = 0.05  # pause between two tries


@asynccontextmanager
async def file_lock(file: Path, holder: str, wait_s: float | None = None) -> AsyncIterator[None]:
    """Hold a `flock` on this file, which exists only meanwhile.

    Args:
        file: It and its folder are made. Its folder's folder exists.
        holder: Words for an error, such as "Another call".
        wait_s: Seconds to wait for another holder; None: no limit.

    Raises:
        GridError: It is transient; another holder has not ended in time.
        ConfigurationError: The file cannot be made.
    """
    deadline = time.monotonic() + (math.inf if wait_s is None else wait_s)
    while (descriptor := _lock_now(file)) is None:
        if time.monotonic() > deadline:
            words = f"{holder} has not ended for {wait_s:.0f} s."
            raise GridError(words, transient=True, next_step="Try again when it has ended.")
        await asyncio.sleep(POLL_S)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(descriptor)  # closing drops the lock


def _lock_now(file: Path) -> int | None:
    """Return the locked file; None if another one has locked it."""
    descriptor = open_private(file)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The last holder may have removed the file between the two calls. Then others lock a new one.
        if os.fstat(descriptor).st_ino == file.stat().st_ino:
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None


def open_private(file: Path) -> int:
    """Open a file to read and append. It and its folder are made, for their owner only. Raises ConfigurationError."""
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        return os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigurationError(
            f"The file {file} cannot be opened: {error.strerror}.",
            next_step="Make its folder writable for this account.",
        ) from None
