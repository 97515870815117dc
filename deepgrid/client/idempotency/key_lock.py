"""The lock of an idempotency key: at most one call at a time decides whether to request jobs under this key.

It is a `flock` on a file, so it works between processes, threads and tasks of one machine, and the kernel drops it when
its holder dies. The holder removes the file.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path
from types import TracebackType

from deepgrid.errors import ConfigurationError, GridError

POLL_S = 0.05


class KeyLock:
    """An exclusive lock, taken with `async with`. Without a folder it does nothing.

    Raises GridError (transient) if another call holds it for longer than `wait_s` seconds. None means no limit.
    """

    def __init__(self, folder: Path | None, key_id: str, wait_s: float | None) -> None:
        self._file = None if folder is None else folder / f"{key_id}.lock"
        self._wait_s = wait_s
        self._descriptor: int | None = None

    async def __aenter__(self) -> KeyLock:
        if self._file is None:
            return self
        deadline = None if self._wait_s is None else asyncio.get_running_loop().time() + self._wait_s
        while not self._take(self._file):
            if deadline is not None and asyncio.get_running_loop().time() > deadline:
                raise GridError(
                    f"Another call with this idempotency key has not ended for {self._wait_s:.0f} s.",
                    transient=True, next_step="Try again when it has ended.",
                )  # fmt: skip
            await asyncio.sleep(POLL_S)
        return self

    def _take(self, file: Path) -> bool:
        descriptor = opened(file)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The last holder may have removed the file between the two calls. Then others lock a new one.
            if os.fstat(descriptor).st_ino == file.stat().st_ino:
                self._descriptor = descriptor
                return True
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(descriptor)
        return False

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None and self._file is not None:
            self._file.unlink(missing_ok=True)
            os.close(self._descriptor)  # closing drops the lock
            self._descriptor = None


def opened(file: Path) -> int:
    """The file, opened for reading and appending; it and its folder are made, for their owner only.

    Raises ConfigurationError.
    """
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        return os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigurationError(
            f"The file {file} of idempotency keys cannot be opened: {error.strerror}.",
            next_step="Make the key's folder writable for this account.",
        ) from None
