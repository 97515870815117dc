"""Runs one command on one channel of an SSH transport, with a limit on time and on output."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import paramiko

from deepgrid.errors import SlurmError, SlurmUnreachable

OUTPUT_LIMIT_BYTES = 16 * 2**20
START_TIMEOUT_S = 30.0
CHUNK_BYTES = 2**16
# Printed before the output of every command: start-up files of the login shell may print text of their own before it.
MARK = b"\n-- deepgrid: the answer follows --\n"


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Output and exit status of a command; -1 if no exit status arrived."""

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


def marked(argv: Sequence[str]) -> str:
    """A command line for the login node that prints MARK on both output streams, then executes the command."""
    script = f'printf %s {shlex.quote(MARK.decode())}; printf %s {shlex.quote(MARK.decode())} >&2; exec "$@"'
    return shlex.join(["sh", "-c", script, "sh", *argv])


def run_command(
    channel: paramiko.Channel, command: str, stdin: bytes, deadline: float, given_up: threading.Event
) -> CommandResult:
    """Run a command line of `marked` to its end.

    Raises TimeoutError, SlurmUnreachable, and SlurmError for too much output.
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
    return CommandResult(channel.exit_status, _after_mark(out), _after_mark(err))


def _after_mark(stream: bytes) -> bytes:
    """The output of the command itself."""
    _, mark, output = stream.partition(MARK)
    if not mark:
        raise SlurmUnreachable("The login node ended the session before it ran the command.")
    return output


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
    """Read one stream to its end."""
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
                raise SlurmUnreachable("The login shell prints too much before it runs a command.")
            raise SlurmError(f"A command on the login node printed more than {OUTPUT_LIMIT_BYTES} bytes.")


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
