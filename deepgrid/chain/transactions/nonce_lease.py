"""The lease of a key's nonces: at most one process at a time numbers the transactions of a key.

A Sender holds a `flock` on `<key file>.lease` from its first transaction in flight to its last. Each time it gets the
lease, it reads the next nonce from the chain. A second process waits, with a timeout. `Turns` makes a process that
sends without a break let others in every few seconds. The kernel drops the lock when its holder dies, so nothing needs
cleanup; the empty file stays. The lease only works on one machine: use one key per machine.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from contextlib import suppress
from pathlib import Path

from deepgrid.errors import ChainError, ConfigurationError

POLL_S = 0.05
PRIVATE = 0o600


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
        descriptor = open_lease(self._file)
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

    async def __aexit__(self, *_: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)  # closing drops the lock
            self._descriptor = None


def open_lease(file: Path) -> int:
    """Open the lease of a key, and create it if it is missing. It belongs to the owner of the key, even if root creates
    it.

    Raises ConfigurationError if this account cannot open it.
    """
    try:
        with suppress(FileExistsError):
            made = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
            key = file.with_suffix("")
            if os.geteuid() == 0 and key.exists():
                owner = key.stat()
                os.fchown(made, owner.st_uid, owner.st_gid)
            return made
        return os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        step = f"Give {file} to this account." if file.exists() else "Make the key's folder writable for this account."
        raise ConfigurationError(
            f"The lease {file} of a key cannot be opened: {error.strerror}.", next_step=step
        ) from None


class Turns:
    """Makes one of the processes that share a lease pause, when it has taken the lease again and again.

    The others poll for the lease. In the moment between two turns they would find it free only by chance.
    """

    def __init__(self, hold_s: float, let_in_s: float) -> None:
        self._hold_s, self._let_in_s = hold_s, let_in_s
        self._released_at = self._offered_at = float("-inf")

    async def let_others_in(self) -> None:
        """Call before each turn. Pauses for `let_in_s` after turns of `hold_s` in all without such a pause."""
        now = asyncio.get_running_loop().time()
        if now - self._released_at < self._let_in_s:
            if now - self._offered_at < self._hold_s:
                return
            await asyncio.sleep(self._let_in_s)
        self._offered_at = asyncio.get_running_loop().time()

    def released(self) -> None:
        """Call after each turn."""
        self._released_at = asyncio.get_running_loop().time()
