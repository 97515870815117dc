"""One leader per provider: of several supervisors of the same provider one acts, the others stand by.

The lock is on the login node (`leader.sh`), so it needs nothing but the cluster. It is freed when the leader's
connection ends or its heartbeat stops. The lock cannot stop a leader that was cut off and does not know it yet. The
epoch can: every effect on the cluster carries it (`Cluster.term`). Transactions of such a leader are keyed by the
state on chain, so they change nothing twice.

A leader whose connection broke may continue its current jobs: only effects of its own term reach the cluster. It starts
nothing new until it leads again. It is deposed as soon as it sees that another supervisor led.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

from deepgrid.condition_log import ConditionLog
from deepgrid.errors import Deposed, GridError, SlurmUnreachable
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.channel import LineChannel
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.scripts import call, read_script
from deepgrid.slurm.submit.protocol import Term

_LEADER = read_script("common.sh", "leader.sh")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaderSettings:
    """Intervals and timeouts of leadership, in seconds.

    A leader must give up its connection before the login node frees the lock:
    `heartbeat_s + answer_timeout_s < silence_timeout_s`.
    """

    heartbeat_s: float = 5.0  # between two heartbeats
    answer_timeout_s: float = 15.0  # an unanswered heartbeat then counts as a broken connection
    silence_timeout_s: int = 25  # without a heartbeat the login node then frees the lock
    retry_s: float = 2.0  # between attempts to take the lock


LEADER_DEFAULTS = LeaderSettings()


class Leader:
    """This process as a candidate for leading `provider` (its name in file names) at the cluster."""

    def __init__(
        self, login: Login, cluster: Cluster, provider: str, settings: LeaderSettings = LEADER_DEFAULTS
    ) -> None:
        self._login = login
        self._cluster = cluster
        self._provider = provider
        self._settings = settings
        self._channel: LineChannel | None = None
        self._last_logged = ""
        self._unreadable = ConditionLog(logger, f"leadership: cannot read the leader lock of {provider}")
        self._lost = ConditionLog(logger, f"leadership: lost the leader lock of {provider}")

    @property
    def leads(self) -> bool:
        """Whether this process holds the lock, as far as it can know; False while the connection is broken."""
        return self._channel is not None

    async def elected(self) -> None:
        """Wait until this process leads. From then on, its effects on the cluster carry its term.

        An error of the login node is logged and retried: an administrator may fix its cause.
        """
        while True:
            try:
                if await self.attempt():
                    return
            except GridError as error:
                self._unreadable.note(error)
            await asyncio.sleep(self._settings.retry_s)

    async def attempt(self) -> bool:
        """Try once to lead. Raises SlurmUnreachable when the lock's state is unknown, and ConfigurationError."""
        epoch = await self._try_lock(last=0)
        self._unreadable.end()
        if self.leads:
            self._cluster.term = Term(self._provider, epoch)
            self._log(f"leading {self._provider} epoch={epoch}")
        return self.leads

    async def hold(self) -> NoReturn:
        """Keep leading, even after broken connections. Raises Deposed as soon as another supervisor has led."""
        while True:
            try:
                if not self.leads:
                    await self._regain()
                await self._heartbeat()
            except Deposed:
                self.close()
                raise
            except GridError as error:
                self._lost.note(error)
                self.close()
            await self._pause(self._settings.retry_s)

    def close(self) -> None:
        """Stop leading. Another supervisor can take over at once."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    async def _regain(self) -> None:
        """Try to take the lock again. It stays held until the login node notices that the old connection ended."""
        term = self._cluster.term
        if term is None or await self._try_lock(last=term.epoch) != term.epoch:
            raise Deposed(f"Another supervisor has led {self._provider}.")
        if self.leads:
            self._lost.end()
            self._log(f"leading {self._provider} again epoch={term.epoch}")

    async def _heartbeat(self) -> None:
        while self._channel is not None and self._cluster.term is not None:
            answer = await self._channel.ask("here", self._settings.answer_timeout_s)
            if not answer.isdigit():
                raise SlurmUnreachable(f"The login node cannot read who leads {self._provider}.")
            if int(answer) != self._cluster.term.epoch:  # happens only where locks do not work
                raise Deposed(f"Another supervisor leads {self._provider}.")
            await self._pause(self._settings.heartbeat_s)

    async def _pause(self, seconds: float) -> None:
        """Wait. Raises Deposed when the login node refuses an effect meanwhile because its term is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._cluster.deposed.wait()
                raise Deposed(f"Another supervisor leads {self._provider}.")

    async def _try_lock(self, last: int) -> int:
        """Try to take the lock and return the epoch of the present leader. `last` is the epoch of our last term."""
        who = f"{socket.gethostname()} {os.getpid()}"
        fixed = (self._cluster.settings.grid_root, self._provider, self._settings.silence_timeout_s, last, who)
        channel = await self._login.open_line_channel(call(_LEADER, *fixed, interpreter="bash"))
        try:
            answer = await channel.read_line(self._settings.answer_timeout_s)
            match answer.split():
                case ["leader", epoch] if epoch.isdigit():
                    self._channel = channel
                    return int(epoch)
                case ["standby", epoch, *other] if epoch.isdigit():
                    self._log(f"standing by for {self._provider}: {_describe_leader(other)} leads")
                    return int(epoch)
                case ["later", *why]:
                    raise SlurmUnreachable(f"{' '.join(why).capitalize()}.")
            raise SlurmUnreachable("The login node gave an unexpected answer.")
        finally:
            if self._channel is not channel:
                channel.close()

    def _log(self, text: str) -> None:
        if text != self._last_logged:
            logger.info("leadership: %s", text)
        self._last_logged = text


def _describe_leader(other: Sequence[str]) -> str:
    """Return the present leader for a log line, from the words "SINCE HOST PROCESS" of the leader's file."""
    match other:
        case [since, host, process] if since.isdigit():
            return f"process {process} on {host}, since {datetime.fromtimestamp(int(since), UTC):%F %T} UTC,"
    return "another supervisor"
