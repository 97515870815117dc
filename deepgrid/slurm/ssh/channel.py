"""One command on one channel of an SSH transport: what goes in, what comes out, within time and size."""

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
CONFIRMED_S = 30.0
CHUNK = 2**16
# Said by every command before its own words: a login shell's start-up files may talk, and mean nothing by it.
MARK = b"\n-- deepgrid: the answer follows --\n"


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command said and how it ended; -1 stands for an exit status that never came."""

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
    """A command line for the login node that says MARK on both its streams, and then is the command."""
    script = f'printf %s {shlex.quote(MARK.decode())}; printf %s {shlex.quote(MARK.decode())} >&2; exec "$@"'
    return shlex.join(["sh", "-c", script, "sh", *argv])


def perform(
    channel: paramiko.Channel, command: str, stdin: bytes, deadline: float, given_up: threading.Event
) -> CommandResult:
    """Run one line of `marked` to its end; raises TimeoutError, SlurmUnreachable, SlurmError for too much output."""
    channel.settimeout(_left(deadline))
    execute(channel, command)
    with suppress(TimeoutError, OSError):  # a command may end without reading all
        channel.sendall(stdin)
    with suppress(OSError):
        channel.shutdown_write()
    out = _drain(channel.recv, channel, deadline, given_up)
    err = _drain(channel.recv_stderr, channel, deadline, given_up)
    if not channel.status_event.wait(_left(deadline)):
        raise TimeoutError
    return CommandResult(channel.exit_status, _unmarked(out), _unmarked(err))


def _unmarked(stream: bytes) -> bytes:
    """What the command itself said."""
    _, mark, said = stream.partition(MARK)
    if not mark:
        raise SlurmUnreachable("The login node ended the session before it ran the command.")
    return said


def execute(channel: paramiko.Channel, command: str) -> None:
    """Start the command. A transport that does not confirm it is dead, which paramiko would not notice."""
    watchdog = threading.Timer(CONFIRMED_S, channel.get_transport().close)
    watchdog.start()
    try:
        channel.exec_command(command)
    finally:
        watchdog.cancel()


def _drain(
    receive: Callable[[int], bytes], channel: paramiko.Channel, deadline: float, given_up: threading.Event
) -> bytes:
    """All bytes of one stream up to its end."""
    pieces: list[bytes] = []
    size = 0
    while True:
        channel.settimeout(min(_left(deadline), 1.0))
        try:
            piece = receive(CHUNK)
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
                raise SlurmUnreachable("The login shell says too much before it runs a command.")
            raise SlurmError(f"A command on the login node said more than {OUTPUT_LIMIT_BYTES} bytes.")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
