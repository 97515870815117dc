"""One SSH transport to a cluster's login node; a supervisor that runs there connects to its own machine.

It runs commands given as lists of arguments, with bytes on standard input, and limits their time and output. A network
fault is SlurmUnreachable: the caller must not draw a conclusion. An unexpected host key or a refused key is
ConfigurationError and stops the work. Errors never contain arguments or standard input: they may hold a customer's
script.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePath
from typing import Protocol

import paramiko

from deepgrid.errors import ConfigurationError, GridError, SlurmUnreachable
from deepgrid.slurm.ssh.channel import CommandResult, LineChannel, marked, run_command, start_command
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.spans import span

KEEP_ALIVE_S = 15
KEY_OPTIONS = "restrict"  # of authorized_keys: no terminal, no forwarding of ports, agents or X11, no start-up file
PARAMIKO_LOG = f"{__name__}.paramiko"
FIRST_RECONNECT_PAUSE_S, LONGEST_RECONNECT_PAUSE_S = 0.5, 15.0
# In texts of paramiko's AuthenticationException, if the connection broke meanwhile: the key was not refused.
CONNECTION_LOST = ("Authentication timeout", "saw EOF")

# paramiko logs a stack trace for each broken connection; our errors say the same in a sentence.
logging.getLogger(PARAMIKO_LOG).setLevel(logging.CRITICAL)


class Runner(Protocol):
    """Runs commands on a login node."""

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None
    ) -> CommandResult: ...

    async def close(self) -> None: ...


class Login:
    """Commands over one transport. It opens at first use, and again after a growing pause when it broke."""

    def __init__(self, settings: LoginSettings) -> None:
        self.settings = settings
        self._client: paramiko.SSHClient | None = None
        self._opening = threading.Lock()
        self._pause_s = 0.0
        self._not_before = 0.0
        self._fault: Exception | None = None
        self._threads = ThreadPoolExecutor(settings.max_channels, thread_name_prefix=f"ssh-{settings.host}")

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None) -> CommandResult:
        """Run one command and return its result, with any exit status.

        Raises SlurmUnreachable when no answer came within `timeout_s` (default: `command_timeout_s` of the settings),
        ConfigurationError when the login node has another host key or refuses ours, SlurmError when the answer was too
        large. The result does not contain what the login shell prints before the command.
        """
        limit_s = timeout_s or self.settings.command_timeout_s
        deadline = time.monotonic() + limit_s
        given_up = threading.Event()
        work = asyncio.get_running_loop().run_in_executor(
            self._threads, self._run, marked(argv), stdin, deadline, given_up
        )
        try:
            async with asyncio.timeout(limit_s + self.settings.timeout_grace_s):
                return await asyncio.shield(work)
        except (asyncio.CancelledError, TimeoutError) as fault:
            given_up.set()
            # Retrieve the exception, or asyncio logs that it was never retrieved.
            work.add_done_callback(lambda done: done.cancelled() or done.exception())
            if isinstance(fault, asyncio.CancelledError):
                raise
            # paramiko measures timeouts by the wall clock: when the clock is set back, its waits take that much longer.
            self._drop(self._client)
            raise self._unreachable("did not answer in time") from None

    async def open_line_channel(self, argv: Sequence[str]) -> LineChannel:
        """Start a command that exchanges lines with the caller. Its channel does not count towards `max_channels`.

        Raises SlurmUnreachable and ConfigurationError as `run` does. Close the channel before the login.
        """
        return await LineChannel.open(partial(self._start, marked(argv)))

    async def close(self) -> None:
        """Close the transport. Running commands fail with SlurmUnreachable."""
        self._drop(self._client)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, command: str, stdin: bytes, deadline: float, given_up: threading.Event) -> CommandResult:
        with self._channel() as channel:
            try:
                return run_command(channel, command, stdin, deadline, given_up)
            finally:
                channel.close()

    def _start(self, command: str) -> paramiko.Channel:
        with self._channel() as channel:
            start_command(channel, command)
            return channel

    @contextmanager
    def _channel(self) -> Iterator[paramiko.Channel]:
        """Open a channel. Its faults become our errors."""
        client = self._open()
        try:
            transport = client.get_transport()
            if transport is None:
                raise EOFError
            yield transport.open_session(timeout=self.settings.connect_timeout_s)
        except TimeoutError:
            raise self._unreachable("did not answer in time") from None
        except (OSError, EOFError, paramiko.SSHException) as fault:
            self._drop(client)
            raise self._unreachable(f"broke the connection ({type(fault).__name__})") from None

    def _open(self) -> paramiko.SSHClient:
        with self._opening:
            if self._client is not None:
                transport = self._client.get_transport()
                if transport is not None and transport.is_active():
                    return self._client
                self._drop(self._client)
            if time.monotonic() < self._not_before:
                raise self._still_waiting()
            try:
                self._client = self._connect()
            except Exception as fault:
                self._fault = fault
                self._pause_s = min(max(2 * self._pause_s, FIRST_RECONNECT_PAUSE_S), LONGEST_RECONNECT_PAUSE_S)
                self._not_before = time.monotonic() + self._pause_s
                raise
            self._pause_s = 0.0
            return self._client

    def _connect(self) -> paramiko.SSHClient:
        settings, client = self.settings, paramiko.SSHClient()
        client.set_log_channel(PARAMIKO_LOG)
        client.set_missing_host_key_policy(_RefuseUnknownHost())
        limit = settings.connect_timeout_s
        try:
            client.load_host_keys(str(settings.known_hosts_file))
            client.connect(
                settings.host, settings.port, settings.user, pkey=read_private_key(settings.key_file), timeout=limit,
                banner_timeout=limit, auth_timeout=limit, allow_agent=False, look_for_keys=False,
            )  # fmt: skip
        except BaseException as fault:
            client.close()
            raise self._explain(fault) from None
        transport = client.get_transport()
        if transport is not None:
            transport.set_keepalive(KEEP_ALIVE_S)
        return client

    def _explain(self, fault: BaseException) -> BaseException:
        where = f"{self.settings.host}:{self.settings.port}"
        if isinstance(fault, paramiko.BadHostKeyException):
            return ConfigurationError(
                f"The login node {where} shows another host key than the one in {self.settings.known_hosts_file}.",
                next_step="Ask the cluster's administrator why before you change that file.",
            )
        is_broken = any(text in str(fault) for text in CONNECTION_LOST)
        if isinstance(fault, paramiko.AuthenticationException) and not is_broken:
            return ConfigurationError(
                f"The login node {where} refuses the key of {self.settings.user}.",
                next_step=f"Put the public half of {self.settings.key_file} into its authorized_keys.",
            )
        if isinstance(fault, FileNotFoundError):
            return ConfigurationError(f"{fault.filename} does not exist.")
        if isinstance(fault, paramiko.AuthenticationException):
            return self._unreachable("closed the connection during authentication")
        if isinstance(fault, (OSError, EOFError, paramiko.SSHException)):
            return self._unreachable(f"cannot be reached ({type(fault).__name__})")
        return fault

    def _still_waiting(self) -> SlurmUnreachable | ConfigurationError:
        """Return the error during the pause before the next attempt.

        A ConfigurationError is repeated, as it does not pass.
        """
        if isinstance(self._fault, ConfigurationError):
            return ConfigurationError(self._fault.message, next_step=self._fault.next_step)
        return self._unreachable("cannot be reached; the next attempt follows after a pause")

    def _unreachable(self, what: str) -> SlurmUnreachable:
        return SlurmUnreachable(f"The login node {self.settings.host}:{self.settings.port} {what}.")

    def _drop(self, client: paramiko.SSHClient | None) -> None:
        if client is not None:
            client.close()
        if self._client is client:
            self._client = None


class _RefuseUnknownHost(paramiko.MissingHostKeyPolicy):
    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        raise ConfigurationError(
            f"The host key of {hostname} ({key.get_name()} {key.fingerprint}) is not in the known_hosts file.",
            next_step="Compare it with the cluster's administrator, then add it.",
        )


class MeteredLogin:
    """Wraps a login. Calls `report` after each command, with the error or with None when the command answered."""

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


def read_private_key(path: Path) -> paramiko.PKey:
    """Return the private key in a file that only its owner can read. Raises ConfigurationError, and OSError."""
    if path.stat().st_mode & 0o077:
        raise ConfigurationError(f"Others can read the key file {path}.", next_step=f"Run chmod 600 {path}.")
    try:
        return paramiko.PKey.from_path(path)
    except (paramiko.SSHException, ValueError, TypeError):
        raise ConfigurationError(f"{path} is not a private key without passphrase.") from None


def authorized_key(key_file: Path, name: str) -> str:
    """Return the public half of a key as a line of sshd's authorized_keys, with `name` as its comment.

    Raises ConfigurationError when the key file cannot be used.
    """
    try:
        key = read_private_key(key_file)
    except OSError as fault:
        raise ConfigurationError(f"{key_file} cannot be read: {fault.strerror}.") from None
    comment = "".join(name.split())
    return f"{KEY_OPTIONS} {key.get_name()} {key.get_base64()} deepgrid-{comment}"
