"""Streams of the agent on a job's node: commands, terminals, connections. The text of `step_agent.py` follows."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pwd
import re
import selectors
import signal
import socket
import struct
import subprocess
import termios
import time
from contextlib import suppress
from typing import Any

OPEN, DATA, ERRORS, WINDOW, EOF, RESIZE, EXIT, CLOSE = range(1, 9)
HEAD = struct.Struct("!IBI")
PIECE = 16384
FIRST_WINDOW = 131072
GRANT = 32768  # bytes that are taken before a WINDOW reports them
MOST_STREAMS = 512
QUIET_S = 0.3  # after the end of a command, until what it left running is not waited for
KILLED = 128 + signal.SIGTERM, 128 + signal.SIGKILL
KILLED_S = 1.0  # until such an end is told: if the job is over, the same signal ends this agent first
HANG_UP_S = 2.0  # from SIGHUP to SIGKILL
CONNECT_S = 10.0

streams: dict[int, Stream] = {}
watched = selectors.DefaultSelector()


unsent = bytearray()


def send(kind: int, number: int, content: bytes = b"") -> None:
    """Add one frame to the output. The windows limit how much that can be."""
    unsent.extend(HEAD.pack(5 + len(content), kind, number) + content)


class Stream:
    """One command or one connection. `credit`: bytes that may still be sent to the customer."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.credit = FIRST_WINDOW
        self.process: Any = None
        self.sources: dict[int, int] = {}  # descriptors that are read, and the kind of their frames
        self.sink = -1  # descriptor that is written
        self.is_terminal = False
        self.waiting = bytearray()  # for the sink
        self.written = 0  # since the last WINDOW
        self.ends_input = False
        self.ended_at = 0.0  # of the process
        self.hung_up_at = 0.0
        self.connect_by = 0.0
        self.socket: Any = None
        self.registered: dict[int, int] = {}

    def watch(self) -> None:
        """Wait for what this stream can do now."""
        wanted: dict[int, int] = {}
        if self.connect_by:
            wanted[self.sink] = selectors.EVENT_WRITE
        else:
            if self.credit > 0:
                for source in self.sources:
                    wanted[source] = selectors.EVENT_READ
            if self.waiting and self.sink >= 0:
                wanted[self.sink] = wanted.get(self.sink, 0) | selectors.EVENT_WRITE
        for descriptor in [one for one in self.registered if one not in wanted]:
            watched.unregister(descriptor)
            del self.registered[descriptor]
        for descriptor, events in wanted.items():
            before = self.registered.get(descriptor)
            if before is None:
                watched.register(descriptor, events, self)
            elif before != events:
                watched.modify(descriptor, events, self)
            self.registered[descriptor] = events

    def ready(self, descriptor: int, events: int) -> None:
        if self.connect_by:
            self.connected()
            return
        if events & selectors.EVENT_WRITE:
            self.flush()
        if events & selectors.EVENT_READ and descriptor in self.sources:
            self.read(descriptor)

    def connected(self) -> None:
        error = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            self.end({"error": "nothing answers at that port of the job's node: " + os.strerror(error)})
            return
        self.connect_by = 0.0
        self.sources[self.sink] = DATA
        self.flush()  # what came meanwhile, and an end of input that came without data

    def read(self, descriptor: int) -> None:
        try:
            piece = os.read(descriptor, min(PIECE, self.credit))
        except BlockingIOError:
            return
        except OSError:  # a terminal without processes
            piece = b""
        if piece:
            self.credit -= len(piece)
            send(self.sources[descriptor], self.number, piece)
            if self.ended_at:
                self.ended_at = time.monotonic()
            self.watch()
            return
        kind = self.sources.pop(descriptor)
        self.watch()
        if descriptor != self.sink:
            os.close(descriptor)
        if self.process is None:
            send(EOF, self.number)
            self.end_connection()
        elif kind == DATA and not self.is_terminal:
            send(EOF, self.number)

    def take(self, content: bytes) -> None:
        if len(self.waiting) + len(content) > FIRST_WINDOW:
            self.end({"error": "more was sent than the window allows"})
        elif self.sink >= 0 and not self.ends_input:
            self.waiting += content
            if not self.connect_by:
                self.flush()
        else:
            self.grant(len(content))  # no process reads it

    def flush(self) -> None:
        while self.waiting:
            try:
                count = os.write(self.sink, self.waiting[:PIECE])
            except BlockingIOError:
                break
            except OSError:  # the reader is gone
                count = len(self.waiting)
            del self.waiting[:count]
            self.grant(count)
        if not self.waiting and self.ends_input:
            self.close_input()
        self.watch()

    def grant(self, count: int) -> None:
        self.written += count
        if self.written >= GRANT:
            send(WINDOW, self.number, struct.pack("!I", self.written))
            self.written = 0

    def finish_input(self) -> None:
        self.ends_input = True
        if not self.waiting and not self.connect_by:
            self.close_input()
            self.watch()

    def close_input(self) -> None:
        if self.sink < 0:
            return
        if self.is_terminal:
            self.waiting += b"\x04"  # end of input, as a person types it
            self.ends_input = False
        elif self.process is None:
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)
            self.end_connection()
        else:
            self.forget(self.sink)
            os.close(self.sink)
            self.sink = -1

    def end_connection(self) -> None:
        """End a connection once both directions have ended."""
        if not self.sources and self.ends_input and not self.waiting:
            self.end({"status": 0})

    def forget(self, descriptor: int) -> None:
        if self.registered.pop(descriptor, 0):
            watched.unregister(descriptor)

    def resize(self, rows: int, columns: int) -> None:
        if self.is_terminal and self.sink >= 0:
            fcntl.ioctl(self.sink, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def hang_up(self, number: int = signal.SIGHUP) -> None:
        """Signal all processes of the command."""
        self.hung_up_at = self.hung_up_at or time.monotonic()
        with suppress(OSError):
            os.killpg(self.process.pid, number)

    def tick(self, now: float) -> None:
        if self.connect_by and now > self.connect_by:
            self.end({"error": "the port of the job's node does not answer"})
        elif self.process is not None:
            if not self.ended_at and self.process.poll() is not None:
                self.ended_at = now
            if self.hung_up_at and now - self.hung_up_at > HANG_UP_S:
                self.hang_up(signal.SIGKILL)
            quiet_s = now - self.ended_at
            if self.ended_at and (not self.sources or (self.credit > 0 and quiet_s > QUIET_S)):
                code = self.process.returncode
                status = code if code >= 0 else 128 - code
                if status not in KILLED or quiet_s > KILLED_S:
                    self.end({"status": status})

    def end(self, how: dict[str, Any]) -> None:
        """Report how the stream ended, and release everything."""
        if streams.pop(self.number, None) is None:
            return
        send(EXIT, self.number, json.dumps(how).encode())
        for descriptor in list(self.registered):
            self.forget(descriptor)
        if self.process is not None and self.process.poll() is None:
            self.hang_up()
            leaving.append(self)
        if self.socket is not None:
            self.socket.close()
        else:
            for descriptor in {*self.sources, self.sink} - {-1}:
                os.close(descriptor)
        self.sources, self.sink = {}, -1


leaving: list[Stream] = []  # streams with processes that were told to end


def connect(stream: Stream, port: int) -> None:
    """Connect to a port of this node's own loopback, and to nothing else."""
    if not isinstance(port, int) or not 0 < port < 65536:
        raise ValueError("the port must be from 1 to 65535")
    stream.socket = line = socket.socket()
    line.setblocking(False)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.sink, stream.connect_by = line.fileno(), time.monotonic() + CONNECT_S
    error = line.connect_ex(("127.0.0.1", port))
    if error not in (0, errno.EINPROGRESS):
        raise OSError(error, os.strerror(error))


def start(stream: Stream, wanted: dict[str, Any], environment: dict[str, str]) -> None:
    """Start a command, or a shell if none is named; in a terminal if `rows` is set."""
    command = [str(word) for word in wanted.get("command") or [shell(), "-i"]]
    if wanted.get("rows"):
        if re.match(r"[A-Za-z0-9._+-]{1,40}\Z", str(wanted.get("term"))):
            environment["TERM"] = wanted["term"]
        inner, outer = os.openpty()[::-1]
        stream.is_terminal, stream.sink = True, outer
        stream.resize(int(wanted["rows"]), int(wanted["columns"]))
        try:
            stream.process = subprocess.Popen(
                command,
                stdin=inner,
                stdout=inner,
                stderr=inner,
                env=environment,
                preexec_fn=own_terminal,  # noqa: PLW1509 - there are no threads
            )
        except OSError:
            os.close(outer)
            stream.sink = -1
            raise
        finally:
            os.close(inner)
        stream.sources[outer] = DATA
    else:
        pipe = subprocess.PIPE
        stream.process = process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True, bufsize=0
        )
        ends = []
        for one in (process.stdin, process.stdout, process.stderr):
            assert one is not None
            ends.append(os.dup(one.fileno()))
            one.close()
        stream.sink = ends[0]
        stream.sources = {ends[1]: DATA, ends[2]: ERRORS}
    for descriptor in {stream.sink, *stream.sources}:
        os.set_blocking(descriptor, False)


def own_terminal() -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def shell() -> str:
    """Return the account's login shell if it is for people, otherwise bash or sh."""
    try:
        own = pwd.getpwuid(os.getuid()).pw_shell
    except KeyError:
        own = ""
    shells = [own] if own.rsplit("/", 1)[-1] in ("bash", "zsh", "fish", "ksh", "tcsh", "csh") else []
    return next((one for one in [*shells, "/bin/bash"] if os.access(one, os.X_OK)), "/bin/sh")
