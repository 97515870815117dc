"""Joins a stream of a job to the streams of this process, and to its terminal."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

from deepgrid.client.tunnel.job_tunnel import JobStream, JobTunnel
from deepgrid.client.tunnel.terminal_filter import TerminalFilter
from deepgrid.errors import GridError, InputError
from deepgrid.services.tunnels.tunnel_frames import Kind, StreamRequest

PIECE_BYTES = 16384
PIECES_AHEAD = 4
HANG_UP = b"~."  # at the beginning of a line, as in ssh
# What full-screen programs turn on: mouse, focus, paste, keys of applications, alternate screen; and what they turn
# off: the cursor, line wrap. Then the scroll region, whose reset moves the cursor, the letters, and colours.
RESTORED = (
    b"".join(b"\x1b[?%dl" % mode for mode in (1000, 1002, 1003, 1004, 1005, 1006, 1015, 2004, 1, 1049))
    + b"\x1b>\x1b[?25h\x1b[?7h\x1b7\x1b[r\x1b8\x1b(B\x0f\x1b[0m\r\n"
)

Show = Callable[[Kind, bytes], Awaitable[None]]


async def carry(stream: JobStream, source: AsyncIterator[bytes], show: Show) -> int:
    """Send what `source` yields, and show what the job answers, until the command ends. Returns its status.

    Raises SessionLost if the session broke, InputError if the job cannot run the command.
    """
    sending = asyncio.create_task(_send(stream, source))
    sending.add_done_callback(lambda done: _note_failure(done, stream))
    try:
        while (piece := await stream.read()) is not None:
            kind, data = piece
            if kind is not Kind.EOF:
                await show(kind, data)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await stream.close()
    if stream.end.error:
        raise InputError(f"The command did not run in the job: {stream.end.error.rstrip('.')}.")
    return stream.end.status


async def without_blocking(number: int, data: bytes, write: Callable[[bytes], object]) -> None:
    """Write to this descriptor in pieces, each when its reader has room for it.

    Meanwhile the session answers its keepalives: a reader may stop for hours, as `less` does.
    """
    for start in range(0, len(data), select.PIPE_BUF):
        await _room(number)
        write(data[start : start + select.PIPE_BUF])


async def _room(number: int) -> None:
    loop = asyncio.get_running_loop()
    room = asyncio.Event()
    try:
        loop.add_writer(number, room.set)
    except OSError:  # a regular file, which always has room
        return
    try:
        await room.wait()
    finally:
        loop.remove_writer(number)


async def _send(stream: JobStream, source: AsyncIterator[bytes]) -> None:
    async for data in source:
        await stream.write(data)
    await stream.end_input()


def _note_failure(sending: asyncio.Task[None], stream: JobStream) -> None:
    if not sending.cancelled() and isinstance(error := sending.exception(), GridError):
        stream.finish(error)


async def standard_input() -> AsyncIterator[bytes]:
    """Yield what this process reads from standard input. A thread reads it, which the end of the process ends."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[bytes]()
    ahead = threading.Semaphore(PIECES_AHEAD)

    def read() -> None:
        while True:
            ahead.acquire()
            try:
                data = os.read(0, PIECE_BYTES)
            except OSError:
                data = b""
            try:
                loop.call_soon_threadsafe(queue.put_nowait, data)
            except RuntimeError:  # the loop is closed
                return
            if not data:
                return

    threading.Thread(target=read, name="standard-input", daemon=True).start()
    while data := await queue.get():
        yield data
        ahead.release()


async def in_terminal(open_tunnel: Callable[[], Awaitable[JobTunnel]], command: Sequence[str]) -> int:
    """Run a shell, or a command, in a terminal of the job that is this process's terminal. Returns its status."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError("A shell needs a terminal.", next_step="Without one, run a command with `dps job exec`.")
    shown = TerminalFilter()
    async with await open_tunnel() as tunnel:
        size = os.get_terminal_size(1)
        request = StreamRequest(
            kind="shell", command=tuple(command), rows=size.lines, columns=size.columns, term=_term()
        )
        stream = await tunnel.stream(request)
        with _raw_terminal(), _following_size(stream):
            try:
                return await carry(stream, _keys(), lambda _, data: without_blocking(1, shown.feed(data), _write))
            finally:
                _write(RESTORED)


async def _keys() -> AsyncIterator[bytes]:
    """Yield what is typed. `~.` at the beginning of a line hangs up."""
    line_start, tilde = True, False
    async for data in standard_input():
        sent = bytearray()
        for byte in data:
            if tilde and byte == HANG_UP[1]:
                raise GridError("You hung up. The shell in the job was ended.")
            if tilde:
                sent += HANG_UP[:1]
            tilde = line_start and not tilde and byte == HANG_UP[0]
            if not tilde:
                sent.append(byte)
            line_start = byte in b"\r\n"
        if sent:
            yield bytes(sent)


@contextmanager
def _raw_terminal() -> Iterator[None]:
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSAFLUSH, before)  # without what the terminal still said of the mouse


@contextmanager
def _following_size(stream: JobStream) -> Iterator[None]:
    loop, resizing = asyncio.get_running_loop(), set[asyncio.Task[None]]()

    def resized() -> None:
        size = os.get_terminal_size(1)
        task = asyncio.ensure_future(stream.resize(size.lines, size.columns))
        resizing.add(task)
        task.add_done_callback(resizing.discard)

    try:
        loop.add_signal_handler(signal.SIGWINCH, resized)
    except (RuntimeError, ValueError):  # the synchronous client's loop, which no signal reaches
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def _term() -> str:
    name = os.environ.get("TERM", "")[:40]
    return name if name and all(one.isalnum() or one in "._+-" for one in name) and name.isascii() else "xterm"
