"""The lease of a key's nonces: at most one process at a time numbers the transactions of a key.

A Sender holds a `flock` on `<key file>.lease` from its first transaction in flight to its last. Each time it gets the
lease, it reads the next nonce from the chain. A second process waits, with a timeout. A long-lived process that always
has something in flight lets others in every few seconds (see `Sender`). The kernel drops the lock when its holder dies,
so nothing needs cleanup; the empty file stays. The lease only works on one machine: use one key per machine.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path
from types import TracebackType

from deepgrid.errors import ChainError, ConfigurationError

POLL_S = 0.05


class NonceLease:
    """An exclusive lock on a file, taken with `async with`. Without a file it does nothing.

    Raises ChainError (transient) if another process holds it for longer than `wait_s` seconds.
    """

    def __init__(self, file: Path | None, wait_s: float) -> None:
        self._file = file
        self._wait_s = wait_s
        self._descriptor: int | None = None

    async def __aenter__(self) -> NonceLease:
        if self._file is None:
            return self
        try:
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigurationError(
                f"The lease {self._file} of a key cannot be opened: {error.strerror}.",
                next_step="Make the key's folder writable for this account.",
            ) from None
        try:
            await self._lock(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return self

    async def _lock(self, descriptor: int) -> None:
        deadline = asyncio.get_running_loop().time() + self._wait_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if asyncio.get_running_loop().time() > deadline:
                    raise ChainError(
                        f"Another process has held the lease of this key for {self._wait_s:.0f} s: file={self._file}."
                    ) from None
            await asyncio.sleep(POLL_S)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)  # closing drops the lock
            self._descriptor = None
