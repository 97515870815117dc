"""One leader a provider: of several supervisors of the same provider one acts, the others stand by.

The lock is on the login node (`leader.sh`), so it needs nothing beside the cluster that is led, and ends with the
leader's connection or its heartbeat. It cannot stop a leader that was cut off and does not know it yet; the epoch
does, which every effect on the cluster shows (`Cluster.term`). What such a leader still sends to the chain is keyed by
the chain's state, so it changes nothing twice.

A leader whose connection broke may go on with what it carries: nothing reaches the cluster meanwhile but in its own
term. It starts nothing new until it leads again, and is deposed as soon as it learns that another one led.
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

from deepgrid.errors import Deposed, GridError, SlurmUnreachable
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.line_channel import LineChannel
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.scripts import call, read_script
from deepgrid.slurm.submit.protocol import Term

AGAIN_S = 2.0

_LEADER = read_script("common.sh", "leader.sh")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between heartbeats, until an unanswered one is a broken connection, and of silence that frees the lock.

    A leader gives up the connection before the login node gives up the leader: `beat_s + lost_s < silence_s`.
    """

    beat_s: float = 5.0
    lost_s: float = 15.0
    silence_s: int = 25


PACE = Pace()


class Leader:
    """This process as a candidate for leading `provider` (its name among files) at the cluster."""

    def __init__(self, login: Login, cluster: Cluster, provider: str, pace: Pace = PACE) -> None:
        self._login = login
        self._cluster = cluster
        self._provider = provider
        self._pace = pace
        self._conversation: LineChannel | None = None
        self._said = ""

    @property
    def leads(self) -> bool:
        """Whether it holds the lock, as far as it can know; False while the connection is broken."""
        return self._conversation is not None

    async def elected(self) -> None:
        """Wait until this process leads; effects on the cluster are of its term from then on.

        Whatever keeps it from the login node is said once and waited for: it may be put right.
        """
        while True:
            try:
                if await self.attempt():
                    return
            except GridError as error:
                self._say(logging.WARNING, f"cannot see who leads {self._provider}, trying again: {error}")
            await asyncio.sleep(AGAIN_S)

    async def attempt(self) -> bool:
        """Lead if nobody else does. Raises SlurmUnreachable when that cannot be told, ConfigurationError."""
        epoch = await self._stand(last=0)
        if self.leads:
            self._cluster.term = Term(self._provider, epoch)
            self._say(logging.INFO, f"leading {self._provider}, epoch {epoch}")
        return self.leads

    async def hold(self) -> NoReturn:
        """Keep leading, through broken connections; raises Deposed as soon as it learns that another one led."""
        while True:
            try:
                if not self.leads:
                    await self._regain()
                await self._beat()
            except Deposed:
                self.close()
                raise
            except GridError as error:
                self._say(logging.WARNING, f"the hold on {self._provider} is broken, taking it again: {error}")
                self.close()
            await self._pause(AGAIN_S)

    def close(self) -> None:
        """Stop leading; another one can take over at once."""
        if self._conversation is not None:
            self._conversation.close()
            self._conversation = None

    async def _regain(self) -> None:
        """Take the lock again; while this process's own former hold is not given up yet, it is not to be had."""
        term = self._cluster.term
        if term is None or await self._stand(last=term.epoch) != term.epoch:
            raise Deposed(f"Another supervisor has led {self._provider}.")
        if self.leads:
            self._say(logging.INFO, f"leading {self._provider} again, epoch {term.epoch}")

    async def _beat(self) -> None:
        while self._conversation is not None and self._cluster.term is not None:
            answer = await self._conversation.ask("here", self._pace.lost_s)
            if not answer.isdigit():
                raise SlurmUnreachable(f"The login node cannot read who leads {self._provider}.")
            if int(answer) != self._cluster.term.epoch:  # where locks do not work
                raise Deposed(f"Another supervisor leads {self._provider}.")
            await self._pause(self._pace.beat_s)

    async def _pause(self, seconds: float) -> None:
        """Wait, unless an effect is told meanwhile that its term is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._cluster.deposed.wait()
                raise Deposed(f"Another supervisor leads {self._provider}.")

    async def _stand(self, last: int) -> int:
        """Try to take the lock; returns the epoch of who has it now. `last` is the epoch of one's own last term."""
        who = f"{socket.gethostname()} {os.getpid()}"
        fixed = (self._cluster.settings.grid_root, self._provider, self._pace.silence_s, last, who)
        conversation = await self._login.converse(call(_LEADER, *fixed, interpreter="bash"))
        try:
            answer = await conversation.hear(self._pace.lost_s)
            match answer.split():
                case ["leader", epoch] if epoch.isdigit():
                    self._conversation = conversation
                    return int(epoch)
                case ["standby", epoch, *other] if epoch.isdigit():
                    self._say(logging.INFO, f"standing by for {self._provider}: {_in_words(other)} leads")
                    return int(epoch)
                case ["later", *why]:
                    raise SlurmUnreachable(f"{' '.join(why).capitalize()}.")
            raise SlurmUnreachable("The login node gave an answer that makes no sense.")
        finally:
            if self._conversation is not conversation:
                conversation.close()

    def _say(self, level: int, words: str) -> None:
        """Log it, once as long as it stays true."""
        if words != self._said:
            logger.log(level, "%s", words)
        self._said = words


def _in_words(other: Sequence[str]) -> str:
    """Who leads, of the words "SINCE HOST PROCESS" in the leader's file."""
    match other:
        case [since, host, process] if since.isdigit():
            return f"process {process} on {host}, since {datetime.fromtimestamp(int(since), UTC):%F %T} UTC,"
    return "another supervisor"
