"""A long-running command on the login node that exchanges lines with this process."""

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
CLOSE_CHECK_S = 1.0  # a reader checks this often whether the channel was closed


class LineChannel:
    """A channel for one caller at a time. Every failure is SlurmUnreachable. Close it at the end.

    A timeout closes the transport, so that the login opens another one. Otherwise a connection that broke without
    notice would keep commands waiting for a quarter of an hour. The channel has its own thread: commands that occupy
    all threads of the login do not delay it.
    """

    def __init__(self, threads: ThreadPoolExecutor, channel: paramiko.Channel) -> None:
        self._threads = threads
        self._channel = channel
        self._received = b""
        self._mark_seen = False
        self._closed = threading.Event()

    @classmethod
    async def open(cls, opened: Callable[[], paramiko.Channel]) -> LineChannel:
        """Talk to the command of the channel that `opened` opens (it may block). Raises what `opened` raises."""
        threads = ThreadPoolExecutor(1, thread_name_prefix="ssh-line-channel")
        opening = asyncio.get_running_loop().run_in_executor(threads, opened)
        try:
            return cls(threads, await asyncio.shield(opening))
        except asyncio.CancelledError:
            opening.add_done_callback(lambda done: done.exception() or threads.submit(done.result().close))
            raise

    async def ask(self, line: str, timeout_s: float) -> str:
        """Send `line` and return the line that answers it."""
        return await self._in_thread(f"{line}\n".encode(), timeout_s)

    async def read_line(self, timeout_s: float) -> str:
        """Return the next line from the command."""
        return await self._in_thread(b"", timeout_s)

    def close(self) -> None:
        """Close the channel without blocking. The command reads the end of its input."""
        self._closed.set()
        self._threads.submit(self._channel.close)
        self._threads.shutdown(wait=False)

    async def _in_thread(self, message: bytes, timeout_s: float) -> str:
        deadline = time.monotonic() + timeout_s
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._exchange, message, deadline)

    def _exchange(self, message: bytes, deadline: float) -> str:
        try:
            self._channel.settimeout(max(deadline - time.monotonic(), 0.1))
            self._channel.sendall(message)
            while not self._mark_seen or b"\n" not in self._received:
                self._receive(deadline)
        except TimeoutError:
            if not self._closed.is_set():
                self._channel.get_transport().close()
            raise SlurmUnreachable("The login node does not answer.") from None
        except (OSError, EOFError, paramiko.SSHException):
            raise SlurmUnreachable("The connection to the login node broke.") from None
        line, _, self._received = self._received.partition(b"\n")
        return line.decode(errors="replace")

    def _receive(self, deadline: float) -> None:
        if self._closed.is_set() or time.monotonic() > deadline:
            raise TimeoutError
        self._channel.settimeout(CLOSE_CHECK_S)
        with suppress(TimeoutError):
            piece = self._channel.recv(LINE_LIMIT_BYTES)
            self._received += piece
            if not self._mark_seen:
                self._skip_to_mark()
            if not piece or len(self._received) > LINE_LIMIT_BYTES:
                raise EOFError

    def _skip_to_mark(self) -> None:
        """Drop the text before the mark."""
        _, mark, rest = self._received.partition(MARK)
        self._mark_seen = bool(mark)
        self._received = rest if mark else self._received[-len(MARK) :]
