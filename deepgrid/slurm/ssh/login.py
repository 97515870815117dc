"""One SSH transport to a cluster's login node; a supervisor that runs there connects to its own machine.

It runs commands given as lists of arguments, with bytes on standard input, bounded in time and
in output. A fault of the network is SlurmUnreachable (nothing may be concluded); a host key that is not
the expected one, or a refused key, is ConfigurationError and stops the work. Neither arguments nor
standard input ever appear in an error: they may hold a customer's script.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

import paramiko

from deepgrid.errors import ConfigurationError, SlurmUnreachable
from deepgrid.slurm.ssh.accounts import Become, CustomerAccounts, check_name, no_account
from deepgrid.slurm.ssh.channel import CommandResult, execute, marked, perform
from deepgrid.slurm.ssh.line_channel import LineChannel

KEEP_ALIVE_S = 15
PARAMIKO_LOG = f"{__name__}.paramiko"
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 15.0
BROKEN_OFF = ("Authentication timeout", "saw EOF")  # of what paramiko calls a failed authentication
OVERTIME_S = 5.0  # after which a command that ought to have been given up is given up from outside

# It logs a stack trace for each connection that breaks; our errors say the same in a sentence.
logging.getLogger(PARAMIKO_LOG).setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class LoginSettings:
    """How to reach a cluster's login node and where the grid's files are there.

    `grid_root` is a folder on the login node, shared with the compute nodes; `job_account` is the Unix account of
    jobs whose customers have none in `accounts`, None for the login's own, or for a refusal where `accounts` says
    anything; `own_account` that of the supervisor's own jobs, None for `job_account`. `submit_wrapper` is the path of
    the root-owned program that submits where `become` is sudo; without it customers' accounts submit themselves. Key
    files are paths, never keys.
    """

    host: str
    port: int
    user: str
    key_file: Path
    known_hosts_file: Path
    grid_root: str
    partition: str = "main"
    job_account: str | None = None
    accounts: CustomerAccounts = field(default_factory=CustomerAccounts)
    become: Become = Become.UID
    own_account: str | None = None
    submit_wrapper: str = ""
    connect_timeout_s: float = 10.0
    command_timeout_s: float = 60.0
    max_channels: int = 8

    def __post_init__(self) -> None:
        # Slurm expands `%` in file names, and the path stands in scripts and in listings.
        if not re.fullmatch(r"/[\w/.+@-]*", self.grid_root, re.ASCII):
            raise ConfigurationError(
                f"The grid's folder {self.grid_root!r} must be an absolute path of plain characters."
            )
        for name in filter(None, (self.job_account, self.own_account)):
            check_name(name)
        if self.submit_wrapper and not re.fullmatch(r"(?:/[\w+@-][\w.+@-]*)+", self.submit_wrapper, re.ASCII):
            raise ConfigurationError(
                f"The wrapper {self.submit_wrapper!r} must be an absolute path of plain characters."
            )

    @property
    def submits_by(self) -> str:
        """How the login node's scripts submit for others: `uid`, `sudo`, or `sudo:` and the wrapper's path."""
        if self.become is Become.SUDO and self.submit_wrapper:
            return f"{self.become.value}:{self.submit_wrapper}"
        return self.become.value

    def account_of(self, customer: str) -> str:
        """The account for a job of this customer (a wallet address); empty for the login's own.

        Raises SlurmError where the customer is not served.
        """
        account = self.accounts.of(customer) or self.job_account
        if account is None and self.accounts:
            raise no_account(customer)
        return account or ""


class Runner(Protocol):
    """Something that runs commands on a login node."""

    async def run(
        self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None
    ) -> CommandResult: ...

    async def close(self) -> None: ...


class Login:
    """Commands over one transport, opened at first use and again, after a growing pause, when it broke."""

    def __init__(self, settings: LoginSettings) -> None:
        self.settings = settings
        self._client: paramiko.SSHClient | None = None
        self._opening = threading.Lock()
        self._pause_s = 0.0
        self._not_before = 0.0
        self._fault: Exception | None = None
        self._threads = ThreadPoolExecutor(settings.max_channels, thread_name_prefix=f"ssh-{settings.host}")

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float | None = None) -> CommandResult:
        """Run one command; its exit status is the caller's to judge.

        Raises SlurmUnreachable when no answer came in `timeout_s` (default: the settings'),
        ConfigurationError when the login node is not the one expected or refuses us, SlurmError when the
        answer was too large. What the login shell says before the command is left out.
        """
        limit_s = timeout_s or self.settings.command_timeout_s
        deadline = time.monotonic() + limit_s
        given_up = threading.Event()
        work = asyncio.get_running_loop().run_in_executor(
            self._threads, self._run, marked(argv), stdin, deadline, given_up
        )
        try:
            async with asyncio.timeout(limit_s + OVERTIME_S):
                return await asyncio.shield(work)
        except (asyncio.CancelledError, TimeoutError) as fault:
            given_up.set()
            work.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody else will look
            if isinstance(fault, asyncio.CancelledError):
                raise
            # paramiko counts by the wall clock: when that is set back, its waits last as much longer.
            self._drop(self._client)
            raise self._unreachable("did not answer in time") from None

    async def converse(self, argv: Sequence[str]) -> LineChannel:
        """Start a command that is talked to line by line, on a channel beside the bounded ones of `run`.

        Raises SlurmUnreachable and ConfigurationError as `run` does. Close it before the login.
        """
        return await LineChannel.begin(partial(self._start, marked(argv)))

    async def close(self) -> None:
        """Close the transport; commands under way fail as unreachable."""
        self._drop(self._client)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, command: str, stdin: bytes, deadline: float, given_up: threading.Event) -> CommandResult:
        with self._channel() as channel:
            try:
                return perform(channel, command, stdin, deadline, given_up)
            finally:
                channel.close()

    def _start(self, command: str) -> paramiko.Channel:
        with self._channel() as channel:
            execute(channel, command)
            return channel

    @contextmanager
    def _channel(self) -> Iterator[paramiko.Channel]:
        """A channel, and our errors for what goes wrong with it."""
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
                self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
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
                settings.host, settings.port, settings.user, pkey=read_key(settings.key_file), timeout=limit,
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
        """Our error for what went wrong while connecting."""
        where = f"{self.settings.host}:{self.settings.port}"
        if isinstance(fault, paramiko.BadHostKeyException):
            return ConfigurationError(
                f"The login node {where} shows another host key than the one in {self.settings.known_hosts_file}.",
                next_step="Ask the cluster's administrator why before you change that file.",
            )
        if _is_refusal(fault):
            return ConfigurationError(
                f"The login node {where} refuses the key of {self.settings.user}.",
                next_step=f"Put the public half of {self.settings.key_file} into its authorized_keys.",
            )
        if isinstance(fault, FileNotFoundError):
            return ConfigurationError(f"{fault.filename} does not exist.")
        if isinstance(fault, paramiko.AuthenticationException):
            return self._unreachable("broke off while it looked at the key")
        if isinstance(fault, (OSError, EOFError, paramiko.SSHException)):
            return self._unreachable(f"cannot be reached ({type(fault).__name__})")
        return fault

    def _still_waiting(self) -> SlurmUnreachable | ConfigurationError:
        """Why no connection is tried just now; what will not pass by itself is told again."""
        if isinstance(self._fault, ConfigurationError):
            return ConfigurationError(self._fault.message, next_step=self._fault.next_step)
        return self._unreachable("cannot be reached; the next attempt comes in a moment")

    def _unreachable(self, what: str) -> SlurmUnreachable:
        return SlurmUnreachable(f"The login node {self.settings.host}:{self.settings.port} {what}.")

    def _drop(self, client: paramiko.SSHClient | None) -> None:
        if client is not None:
            client.close()
        if self._client is client:
            self._client = None


def _is_refusal(fault: BaseException) -> bool:
    """Whether the login node said no. A connection that broke or timed out meanwhile has the same class."""
    broken = any(words in str(fault) for words in BROKEN_OFF)
    return isinstance(fault, paramiko.AuthenticationException) and not broken


def read_key(path: Path) -> paramiko.PKey:
    """The private key in a file that only its owner reads. Raises ConfigurationError, and OSError."""
    if path.stat().st_mode & 0o077:
        raise ConfigurationError(f"Others can read the key file {path}.", next_step=f"Run chmod 600 {path}.")
    try:
        return paramiko.PKey.from_path(path)
    except (paramiko.SSHException, ValueError, TypeError):
        raise ConfigurationError(f"{path} is not a private key without passphrase.") from None


class _RefuseUnknownHost(paramiko.MissingHostKeyPolicy):
    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        raise ConfigurationError(
            f"The host key of {hostname} ({key.get_name()} {key.fingerprint}) is in no known_hosts file of ours.",
            next_step="Compare it with the cluster's administrator, then add it.",
        )
