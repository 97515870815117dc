"""Runs one command on one channel of an SSH transport: to its end, with limits on time and output, or line by line."""

from __future__ import annotations

import asyncio
import shlex
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import paramiko

from deepgrid.errors import GridError, SlurmError, SlurmUnreachable
from deepgrid.slurm.ssh.ssh_errors import CHECK_PATH, CHECK_SHELL, never_ran

OUTPUT_LIMIT_BYTES = 16 * 2**20
START_TIMEOUT_S = 30.0
CHUNK_BYTES = 2**16
LINE_LIMIT_BYTES = 2**16
KEPT_BYTES = 1024  # of what a login shell prints before the command, for an error
CLOSE_CHECK_S = 1.0  # a reader of lines checks this often whether the channel was closed
# Printed before the output of every command: start-up files of the login shell may print text of their own before it.
MARK = b"\n-- deepgrid: the answer follows --\n"
WORD_CHARACTERS = 160
_QUOTED_MARK = shlex.quote(MARK.decode())
_ESCAPES = {ord(character): f"\\0{ord(character):03o}" for character in "\n!'\\"}


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Output and exit status of a command."""

    exit_status: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.stdout.decode(errors="replace")

    @property
    def complaint(self) -> str:
        """Standard error as text."""
        return self.stderr.decode(errors="replace")


def with_marker(argv: Sequence[str]) -> str:
    """Return a command line for the login node that prints MARK on both output streams, then executes the command.

    Every login shell understands it, because nothing in it is special in any: csh reads no line ends and no `!` in
    quotes, and some read no words of more than 1,000 characters. printf turns it back into text for sh.
    """
    script = f"printf %s {_QUOTED_MARK}; printf %s {_QUOTED_MARK} >&2; exec {shlex.join(argv)}"
    words = (script[first : first + WORD_CHARACTERS] for first in range(0, len(script), WORD_CHARACTERS))
    escaped = " ".join(f"'{word.translate(_ESCAPES)}'" for word in words)
    return f"""sh -c 'eval "$(printf %b "$0" "$@")"' {escaped}"""


def run_command(
    channel: paramiko.Channel, command: str, stdin: bytes, deadline: float, given_up: threading.Event
) -> CommandResult:
    """Run a command line of `with_marker` to its end.

    Raises TimeoutError, SlurmUnreachable, SlurmError for too much output, and what paramiko raises.
    """
    channel.settimeout(_seconds_left(deadline))
    start_command(channel, command)
    with suppress(TimeoutError, OSError):  # a command may end without reading all its input
        channel.sendall(stdin)
    with suppress(OSError):
        channel.shutdown_write()
    out = _read_stream(channel.recv, channel, deadline, given_up)
    err = _read_stream(channel.recv_stderr, channel, deadline, given_up)
    if not channel.status_event.wait(_seconds_left(deadline)):
        raise TimeoutError
    (_, mark, stdout), (_, marked_too, stderr) = out.partition(MARK), err.partition(MARK)
    if not mark or not marked_too:
        raise never_ran(err, out)
    if channel.exit_status < 0:  # the connection broke, or a signal ended the command
        raise SlurmUnreachable("A command on the login node ended without a status.", next_step=CHECK_PATH)
    return CommandResult(channel.exit_status, stdout, stderr)


def start_command(channel: paramiko.Channel, command: str) -> None:
    """Start the command. Closes a transport that does not confirm it: paramiko does not notice that it is dead."""
    watchdog = threading.Timer(START_TIMEOUT_S, channel.get_transport().close)
    watchdog.start()
    try:
        channel.exec_command(command)
    finally:
        watchdog.cancel()


def _read_stream(
    receive: Callable[[int], bytes], channel: paramiko.Channel, deadline: float, given_up: threading.Event
) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        channel.settimeout(min(_seconds_left(deadline), 1.0))
        try:
            piece = receive(CHUNK_BYTES)
        except TimeoutError:
            if given_up.is_set():
                raise
            continue
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
        if size > OUTPUT_LIMIT_BYTES:
            if MARK not in b"".join(pieces):
                raise SlurmUnreachable(
                    "The login shell prints too much before it runs a command.", next_step=CHECK_SHELL
                )
            raise SlurmError(f"A command on the login node printed more than {OUTPUT_LIMIT_BYTES} bytes.")


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


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
        """Talk to the command of the channel that `opened` opens (it may block). Raises the errors of `opened`."""
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
            raise SlurmUnreachable("The login node does not answer.", next_step=CHECK_PATH) from None
        except GridError:
            raise
        except Exception:  # whatever paramiko raises
            raise SlurmUnreachable("The connection to the login node broke.", next_step=CHECK_PATH) from None
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
            if not piece and not self._mark_seen:
                raise never_ran(self._channel.recv_stderr(LINE_LIMIT_BYTES), self._received)
            if not piece or len(self._received) > LINE_LIMIT_BYTES:
                raise EOFError

    def _skip_to_mark(self) -> None:
        _, mark, rest = self._received.partition(MARK)
        self._mark_seen = bool(mark)
        self._received = rest if mark else self._received[-KEPT_BYTES:]
