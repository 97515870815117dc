"""Commands on a cluster's login node over SSH; a supervisor on that node connects to its own machine.

Commands are lists of arguments, with bytes on standard input. Their run time and output are limited. A network fault is
SlurmUnreachable: the caller must not draw a conclusion. An unexpected host key or a refused key is ConfigurationError
and stops the work. Errors of the SSH library never reach callers. Errors never contain arguments or standard input,
which may hold a customer's script.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePath
from typing import Protocol

import paramiko

from deepgrid.errors import GridError
from deepgrid.slurm.ssh.byte_channel import ByteChannel
from deepgrid.slurm.ssh.channel import CommandResult, LineChannel, run_command, start_command, with_marker
from deepgrid.slurm.ssh.clean_environment import in_clean_environment
from deepgrid.slurm.ssh.login_settings import Endpoint, LoginSettings
from deepgrid.slurm.ssh.ssh_connection import Attempt, Connection, count_sessions
from deepgrid.slurm.ssh.ssh_errors import explain, unreachable
from deepgrid.slurm.ssh.ssh_transport import read_private_key
from deepgrid.spans import span

KEY_OPTIONS = "restrict"  # in authorized_keys: no terminal, no forwarding of ports, agents or X11, no start-up file


class Runner(Protocol):
    """Runs commands on a login node."""

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None
    ) -> CommandResult: ...

    async def close(self) -> None: ...


class Login:
    """Runs commands over one connection. If long-lived sessions use all sessions that sshd allows, it opens another."""

    def __init__(self, settings: LoginSettings) -> None:
        self.settings = settings
        self._connections = [Connection(settings)]
        self._adding = threading.Lock()
        self._threads = ThreadPoolExecutor(settings.max_channels, thread_name_prefix=f"ssh-{settings.host}")

    @property
    def node(self) -> Endpoint:
        """The login node of the current connection, or of the last one."""
        return self._connections[0].node

    @property
    def session_limit(self) -> int | None:
        """How many concurrent sessions sshd allows per connection; None until it refuses one."""
        limits = [one.session_limit for one in self._connections if one.session_limit is not None]
        return min(limits, default=None)

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None) -> CommandResult:
        """Run one command and return its result, with any exit status.

        Raises SlurmUnreachable when no answer came within `timeout_s` (default: `command_timeout_s` of the settings),
        ConfigurationError when the login node has another host key or refuses our key, and SlurmError when the answer
        is too large. The result does not contain what the login shell prints before the command.
        """
        limit_s = timeout_s or self.settings.answer_timeout_s
        attempt = Attempt(time.monotonic() + limit_s)
        command = with_marker(in_clean_environment(argv, self.settings))
        work = asyncio.get_running_loop().run_in_executor(self._threads, self._run, command, stdin, attempt)
        try:
            async with asyncio.timeout(limit_s + self.settings.timeout_grace_s):
                return await asyncio.shield(work)
        except (asyncio.CancelledError, TimeoutError) as fault:
            # Retrieve the exception. Otherwise asyncio logs that it was never retrieved.
            work.add_done_callback(lambda done: done.cancelled() or done.exception())
            if isinstance(fault, asyncio.CancelledError):
                attempt.given_up.set()
                raise
            # paramiko measures timeouts with the wall clock. When the clock is set back, its waits take that much
            # longer.
            attempt.give_up()
            raise unreachable(self.node, "did not answer in time") from None

    async def open_line_channel(self, argv: Sequence[str]) -> LineChannel:
        """Start a command that exchanges lines with the caller. Its channel does not count towards `max_channels`.

        Raises SlurmUnreachable and ConfigurationError as `run` does. Close the channel before the login.
        """
        return await LineChannel.open(partial(self._start, with_marker(in_clean_environment(argv, self.settings))))

    async def open_byte_channel(self, argv: Sequence[str]) -> ByteChannel:
        """Start a command that exchanges bytes with the caller, like `open_line_channel`."""
        start = partial(self._start, with_marker(in_clean_environment(argv, self.settings)))
        return await ByteChannel.open(start)

    async def count_sessions(self, most: int) -> int:
        """Return how many concurrent sessions the login node allows on a new connection, at most `most`.

        Raises SlurmUnreachable and ConfigurationError as `run` does.
        """
        return await asyncio.to_thread(count_sessions, self.settings, self.node, most)

    async def close(self) -> None:
        """Close all connections. Running commands fail with SlurmUnreachable."""
        for connection in self._connections:
            connection.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, command: str, stdin: bytes, attempt: Attempt) -> CommandResult:
        with self._session(attempt) as channel:
            return run_command(channel, command, stdin, attempt.deadline, attempt.given_up)

    def _start(self, command: str) -> paramiko.Channel:
        attempt = Attempt(time.monotonic() + self.settings.command_timeout_s, lasting=True)
        with self._session(attempt) as channel:
            start_command(channel, command)
            return channel

    @contextmanager
    def _session(self, attempt: Attempt) -> Iterator[paramiko.Channel]:
        """Open a session. It is closed at the end, unless it is long-lived. Its faults become our errors."""
        connection, channel = self._open_session(attempt)
        is_done = False
        try:
            yield channel
            is_done = True
        except GridError:
            raise
        except TimeoutError:
            raise unreachable(connection.node, "did not answer in time") from None
        except Exception as fault:
            transport = channel.get_transport()
            if not (isinstance(fault, paramiko.SSHException) and transport.is_active()):
                connection.drop(transport)
            raise explain(fault, connection.node) from None
        finally:
            if not (is_done and attempt.lasting):
                connection.end_session(channel)

    def _open_session(self, attempt: Attempt) -> tuple[Connection, paramiko.Channel]:
        number = 0
        while True:
            with self._adding:
                if number == len(self._connections):
                    self._connections.append(Connection(self.settings))
            connection = self._connections[number]
            try:
                channel = connection.open_session(attempt)
            except TimeoutError:
                raise unreachable(connection.node, "did not answer in time") from None
            if channel is not None:
                return connection, channel
            number += 1


class MeteredLogin:
    """Wraps a login. Calls `report` after each command, with the error, or with None if the command answered."""

    def __init__(self, login: Runner, report: Callable[[GridError | None], None]) -> None:
        self._login = login
        self._report = report

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None) -> CommandResult:
        """Run a command like `Login.run`."""
        try:
            with span(f"ssh {PurePath(argv[0]).name}"):
                result = await self._login.run(argv, stdin=stdin, timeout_s=timeout_s)
        except GridError as error:
            self._report(error)
            raise
        self._report(None)
        return result

    async def close(self) -> None:
        """Close the login."""
        await self._login.close()


def authorized_key(key_file: Path, name: str) -> str:
    """Return the public half of a key as a line of sshd's authorized_keys, with `name` as its comment.

    Raises ConfigurationError when the key file cannot be used.
    """
    key = read_private_key(key_file)
    comment = "".join(name.split())
    return f"{KEY_OPTIONS} {key.get_name()} {key.get_base64()} deepgrid-{comment}"
