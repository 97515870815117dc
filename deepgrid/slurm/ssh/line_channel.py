"""A command on the login node that is talked to line by line, for as long as both sides live."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import paramiko

from deepgrid.errors import SlurmUnreachable
from deepgrid.slurm.ssh.channel import MARK

LINE_LIMIT_BYTES = 2**16
ABANDON_S = 1.0  # within which a listener notices that nobody wants to know any more


class LineChannel:
    """One at a time asks or listens. Every failure is SlurmUnreachable; close it at the end.

    Silence closes the transport, for the login to open another: a connection that broke in the middle, without a word,
    would otherwise keep commands waiting for a quarter of an hour. It has a thread of its own: commands that fill the
    login's threads do not delay it.
    """

    def __init__(self, threads: ThreadPoolExecutor, channel: paramiko.Channel) -> None:
        self._threads = threads
        self._channel = channel
        self._heard = b""
        self._begun = False
        self._over = threading.Event()

    @classmethod
    async def begin(cls, opened: Callable[[], paramiko.Channel]) -> LineChannel:
        """Talk to the command of the channel that `opened` opens (it may block). Raises what that raises."""
        threads = ThreadPoolExecutor(1, thread_name_prefix="ssh-conversation")
        opening = asyncio.get_running_loop().run_in_executor(threads, opened)
        try:
            return cls(threads, await asyncio.shield(opening))
        except asyncio.CancelledError:
            opening.add_done_callback(lambda done: done.exception() or threads.submit(done.result().close))
            raise

    async def ask(self, line: str, timeout_s: float) -> str:
        """Say `line` and return the line that answers it."""
        return await self._in_thread(f"{line}\n".encode(), timeout_s)

    async def hear(self, timeout_s: float) -> str:
        """The next line of the other side."""
        return await self._in_thread(b"", timeout_s)

    def close(self) -> None:
        """End it; the other side reads the end of its input. Does not block."""
        self._over.set()
        self._threads.submit(self._channel.close)
        self._threads.shutdown(wait=False)

    async def _in_thread(self, said: bytes, timeout_s: float) -> str:
        deadline = time.monotonic() + timeout_s
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._exchange, said, deadline)

    def _exchange(self, said: bytes, deadline: float) -> str:
        try:
            self._channel.settimeout(max(deadline - time.monotonic(), 0.1))
            self._channel.sendall(said)
            while not self._begun or b"\n" not in self._heard:
                self._listen(deadline)
        except TimeoutError:
            if not self._over.is_set():
                self._channel.get_transport().close()
            raise SlurmUnreachable("The login node does not answer.") from None
        except (OSError, EOFError, paramiko.SSHException):
            raise SlurmUnreachable("The connection to the login node broke.") from None
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode(errors="replace")

    def _listen(self, deadline: float) -> None:
        if self._over.is_set() or time.monotonic() > deadline:
            raise TimeoutError
        self._channel.settimeout(ABANDON_S)
        with suppress(TimeoutError):
            piece = self._channel.recv(LINE_LIMIT_BYTES)
            self._heard += piece
            if not self._begun:
                self._skip_chatter()
            if not piece or len(self._heard) > LINE_LIMIT_BYTES:
                raise EOFError

    def _skip_chatter(self) -> None:
        """Forget what was said before the mark."""
        _, mark, rest = self._heard.partition(MARK)
        self._begun = bool(mark)
        self._heard = rest if mark else self._heard[-len(MARK) :]
