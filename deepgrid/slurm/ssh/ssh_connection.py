"""One SSH connection of a login, opened again after a growing pause when it broke, and its sessions.

sshd allows some sessions per connection (`MaxSessions`, 10 by default, less on hardened login nodes). A session that it
refuses for now waits for a free one. The connection stays open meanwhile, and with it the leader's lock.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field

import paramiko

from deepgrid.errors import ConfigurationError, GridError, SlurmUnreachable
from deepgrid.slurm.ssh.login_settings import Endpoint, LoginSettings
from deepgrid.slurm.ssh.ssh_errors import explain, unreachable
from deepgrid.slurm.ssh.ssh_transport import Transport, open_transport

FIRST_RECONNECT_PAUSE_S, LONGEST_RECONNECT_PAUSE_S = 0.5, 15.0
ASK_AGAIN_S = 0.05  # after a refused session, unless one of ours ends before
REFUSAL_GRACE_S = 2.0  # sshd may count a session for a moment after its end
RAISE_LIMIT = "Ask its administrator for MaxSessions 10 or more in sshd_config, for this account."

logger = logging.getLogger(__name__)


@dataclass
class Attempt:
    """One use of a connection. Its caller may give up: then the result is not read, and waits end."""

    deadline: float  # by time.monotonic
    lasting: bool = False  # a session that stays open, like the leader's lock
    given_up: threading.Event = field(default_factory=threading.Event)
    transport: paramiko.Transport | None = None  # set while it is in use

    def left(self) -> float:
        """Return the remaining seconds. Raises TimeoutError when there are none, or the caller gave up."""
        left = self.deadline - time.monotonic()
        if left <= 0 or self.given_up.is_set():
            raise TimeoutError
        return left

    def give_up(self) -> None:
        """Break the connection if it is in use. It does not answer."""
        self.given_up.set()
        if self.transport is not None:
            with suppress(Exception):
                self.transport.close()


class Connection:
    """Opens sessions. `node` is the login node that is connected, or was connected last."""

    def __init__(self, settings: LoginSettings) -> None:
        self._settings = settings
        self._nodes = settings.endpoints()
        self.node = self._nodes[0]
        self._transport: Transport | None = None
        self._sessions: list[tuple[paramiko.Channel, bool]] = []
        self._opening = threading.Lock()
        self._turn = threading.Lock()  # of refused sessions: one asks again, the others wait behind it
        self._freed = threading.Event()
        self._counting = threading.Lock()
        self._closed = False
        self._pause_s = 0.0
        self._not_before = 0.0
        self._fault: GridError | None = None
        self.session_limit: int | None = None  # learned when sshd refuses a session

    def open_session(self, attempt: Attempt) -> paramiko.Channel | None:
        """Open a session, waiting for a free one until the attempt's deadline.

        Returns None when lasting sessions occupy all that sshd allows: another connection is needed.
        Raises SlurmUnreachable, ConfigurationError, and TimeoutError.
        """
        if self.session_limit and self._count(lasting=True) >= self.session_limit:
            return None
        return self._try(attempt) or self._wait_for_session(attempt)

    def is_connected(self) -> bool:
        """Return whether the transport is open, as far as is known."""
        return self._transport is not None and self._transport.is_active()

    def end_session(self, channel: paramiko.Channel) -> None:
        """Close the session and let a waiting one be tried now."""
        with suppress(Exception):  # paramiko raises many kinds of errors when the connection is gone
            channel.close()
        self._freed.set()

    def close(self) -> None:
        """Close the transport for good."""
        self._closed = True
        self.drop()

    def drop(self, transport: paramiko.Transport | None = None) -> None:
        """Close this transport, or the present one. The next session opens another one."""
        transport = transport or self._transport
        if transport is not None:
            with suppress(Exception):
                transport.close()
        if self._transport is transport:
            self._transport = None

    def _wait_for_session(self, attempt: Attempt) -> paramiko.Channel | None:
        if not self._turn.acquire(timeout=attempt.left()):
            raise self._none_free()
        idle_since = time.monotonic()
        try:
            while True:
                if self._count(lasting=False):
                    idle_since = time.monotonic()
                elif time.monotonic() - idle_since > REFUSAL_GRACE_S:
                    if self._count(lasting=True):
                        return None
                    raise unreachable(self.node, "allows no session", RAISE_LIMIT)
                self._freed.wait(ASK_AGAIN_S)
                self._freed.clear()
                try:
                    attempt.left()
                except TimeoutError:
                    raise self._none_free() from None
                if (channel := self._try(attempt)) is not None:
                    return channel
        finally:
            self._turn.release()

    def _none_free(self) -> SlurmUnreachable:
        return unreachable(self.node, f"had no free session in time: it allows {self.session_limit}", RAISE_LIMIT)

    def _try(self, attempt: Attempt) -> paramiko.Channel | None:
        """Ask for a session once. Returns None when sshd refuses it for now."""
        attempt.transport = transport = self._open()
        try:
            channel = transport.open_session(timeout=self._settings.connect_timeout_s)
        except Exception as fault:
            if isinstance(fault, paramiko.SSHException) and transport.is_active() and not _is_timeout(fault):
                attempt.transport = None
                self.session_limit = max(self.session_limit or 0, self._count())
                return None
            self.drop(transport)
            raise explain(fault, self.node) from None
        with self._counting:
            self._sessions.append((channel, attempt.lasting))
        if self.session_limit is not None:
            self.session_limit = max(self.session_limit, self._count())
        return channel

    def _count(self, *, lasting: bool | None = None) -> int:
        with self._counting:
            self._sessions = [one for one in self._sessions if not one[0].closed]
            return sum(lasting is None or lasts is lasting for _, lasts in self._sessions)

    def _open(self) -> Transport:
        """Return the transport. Opens it when there is none, but not during the pause after a failure."""
        with self._opening:
            if self._transport is not None:
                if self._transport.is_active():
                    return self._transport
                self.drop(self._transport)
                self._rotate()
            if self._closed:
                raise unreachable(self.node, "is not used any more: the login was closed", "")
            if time.monotonic() < self._not_before:
                raise self._still_waiting()
            try:
                self._transport = self._connect()
            except GridError as fault:
                self._fault = fault
                self._pause_s = min(max(2 * self._pause_s, FIRST_RECONNECT_PAUSE_S), LONGEST_RECONNECT_PAUSE_S)
                self._not_before = time.monotonic() + self._pause_s
                raise
            self._pause_s = 0.0
            return self._transport

    def _connect(self) -> Transport:
        """Connect to the first login node in turn that can be used. Raises the error of all of them."""
        faults: list[GridError] = []
        for _ in self._nodes:
            self.node = self._nodes[0]
            try:
                transport = open_transport(self._settings, self.node)
            except GridError as fault:
                faults.append(fault)
                self._rotate()
            else:
                if faults:
                    logger.warning("using the login node %s: %s", self.node.host, " ".join(map(str, faults)))
                return transport
        transient = [fault for fault in faults if fault.transient]
        raise _combined_error(transient) if transient else faults[0]

    def _rotate(self) -> None:
        self._nodes = [*self._nodes[1:], self._nodes[0]]

    def _still_waiting(self) -> GridError:
        """Return the error during the pause before the next attempt.

        A ConfigurationError is repeated, as it does not pass.
        """
        if isinstance(self._fault, ConfigurationError):
            return ConfigurationError(self._fault.message, next_step=self._fault.next_step)
        return unreachable(self.node, "cannot be reached; the next attempt follows after a pause")


def _combined_error(faults: list[GridError]) -> SlurmUnreachable:
    return SlurmUnreachable(" ".join(fault.message for fault in faults), next_step=faults[-1].next_step)


def _is_timeout(fault: Exception) -> bool:
    return "Timeout" in str(fault)


def count_sessions(settings: LoginSettings, node: Endpoint, most: int) -> int:
    """Return how many sessions at once this login node allows on a new connection, at most `most`. It runs nothing."""
    transport = open_transport(settings, node)
    sessions = []  # paramiko closes a session that is not referred to
    try:
        for count in range(most):
            try:
                sessions.append(transport.open_session(timeout=settings.connect_timeout_s))
            except Exception as fault:
                if transport.is_active() and isinstance(fault, paramiko.SSHException) and not _is_timeout(fault):
                    return count
                raise explain(fault, node) from None
        return most
    finally:
        transport.close()
