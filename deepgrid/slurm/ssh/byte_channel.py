"""A channel of an SSH transport as two streams of bytes, for a command that stays."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import cast

import paramiko

from deepgrid.errors import GridError, SlurmUnreachable
from deepgrid.slurm.ssh.channel import KEPT_BYTES, MARK
from deepgrid.slurm.ssh.ssh_errors import CHECK_PATH, excerpt, never_ran
from deepgrid.slurm.ssh.ssh_transport import Transport

PIECE_BYTES = 2**16
LONGEST_GREETING = 2**16  # of a login shell, before the command
LEAST_ROOM = 2**12  # bytes up to the next message that lets the command send more


class ByteChannel:
    """The standard streams of a command. One caller reads, and one writes. Close it at the end.

    It has threads of its own, so that commands that occupy all threads of the login do not delay it. To wake a thread
    costs more than the rest. So what has arrived is read without one, and one thread writes for all channels of an SSH
    connection what their commands have room for. What is not read stays in the SSH window, which is limited.
    """

    def __init__(self, threads: ThreadPoolExecutor, channel: paramiko.Channel) -> None:
        self._threads = threads
        self._writer = cast(Transport, channel.get_transport()).writer
        self._channel = channel
        self._before: bytes | None = b""  # what came before the mark; None once it was seen
        self._arrived = asyncio.Event()
        channel.in_buffer.set_event(_Arrival(asyncio.get_running_loop(), self._arrived))

    @classmethod
    async def open(cls, opened: Callable[[], paramiko.Channel]) -> ByteChannel:
        """Talk to the command of the channel that `opened` opens (it may block). Raises the errors of `opened`."""
        threads = ThreadPoolExecutor(2, thread_name_prefix="ssh-byte-channel")
        opening = asyncio.get_running_loop().run_in_executor(threads, opened)
        try:
            channel = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(lambda done: done.exception() or threads.submit(done.result().close))
            raise
        channel.settimeout(None)
        return cls(threads, channel)

    async def read(self) -> bytes:
        """Return the next bytes of the command; none at its end. Raises SlurmUnreachable if it never ran."""
        if self._before is None:
            while not self._is_ready():
                self._arrived.clear()
                if not self._is_ready():
                    await self._arrived.wait()
            room = self._channel.in_window_threshold - self._channel.in_window_sofar
            if room >= LEAST_ROOM:  # else `recv` also sends a message, for which it may wait
                return self._channel.recv(min(room, PIECE_BYTES))
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read)

    async def write(self, data: bytes) -> None:
        """Write all of it. Waits while the command does not read. Raises SlurmUnreachable if the command is gone."""
        thread = self._writer if len(data) <= self._channel.out_window_size else self._threads
        try:
            await asyncio.get_running_loop().run_in_executor(thread, self._write, data)
        except RuntimeError:  # the connection is closed, and its threads with it
            raise _broken() from None

    async def complaint(self) -> str:
        """Return the beginning of what the command wrote to standard error so far, on one line."""
        said = await asyncio.get_running_loop().run_in_executor(self._threads, self._complaint)
        return excerpt(said.partition(MARK)[2].decode(errors="replace"))

    def close(self) -> None:
        """Close the channel without blocking. The command reads the end of its input."""
        self._threads.submit(self._close)
        self._threads.shutdown(wait=False)

    def _is_ready(self) -> bool:
        """Return whether something can be read at once, which may be the end."""
        return self._channel.recv_ready() or self._channel.closed or bool(self._channel.eof_received)

    def _read(self) -> bytes:
        try:
            while True:
                piece = self._channel.recv(PIECE_BYTES)
                if self._before is None:
                    return piece
                before, mark, rest = (self._before + piece).partition(MARK)
                if mark:
                    self._before = None
                    if rest:
                        return rest
                elif not piece or len(before) > LONGEST_GREETING:
                    raise never_ran(self._channel.recv_stderr(KEPT_BYTES), before[:KEPT_BYTES])
                else:
                    self._before = before
        except GridError:
            raise
        except Exception:  # whatever paramiko raises
            return b""

    def _write(self, data: bytes) -> None:
        try:
            self._channel.sendall(data)
        except Exception:  # whatever paramiko raises
            raise _broken() from None

    def _complaint(self) -> bytes:
        with suppress(Exception):
            self._channel.settimeout(1.0)
            return bytes(self._channel.recv_stderr(4 * KEPT_BYTES))
        return b""

    def _close(self) -> None:
        with suppress(Exception):
            self._channel.close()


def _broken() -> SlurmUnreachable:
    return SlurmUnreachable("The connection to the login node broke.", next_step=CHECK_PATH)


class _Arrival(threading.Event):
    """What the SSH library sets, in a thread of its own, when something has arrived: it wakes a task."""

    def __init__(self, loop: asyncio.AbstractEventLoop, arrived: asyncio.Event) -> None:
        super().__init__()
        self._loop, self._arrived = loop, arrived

    def set(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            if not self._arrived.is_set():
                self._loop.call_soon_threadsafe(self._arrived.set)
