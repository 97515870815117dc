"""Where the answers of Slurm come from: the interface, and its implementation by commands on the login node.

`Cluster` asks all its questions through a `SlurmBackend`. Decision 0126 says what `slurmrestd` would need.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol, TypeVar

from deepgrid.errors import SlurmError, SlurmUnreachable
from deepgrid.slurm.commands.complaints import is_outage, the_complaint
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.commands.query import Query
from deepgrid.slurm.commands.sacct import DISABLED, Sacct
from deepgrid.slurm.commands.scontrol import PartitionNodes, Scontrol
from deepgrid.slurm.commands.sdiag import Sdiag
from deepgrid.slurm.commands.squeue import Squeue
from deepgrid.slurm.flood import FloodWatch
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.login import Runner

Answer = TypeVar("Answer")
log = logging.getLogger(__name__)
NOT_FOUND = 127  # the exit status of a command that does not exist
TIMED_OUT = (124, 137)  # exit statuses of `timeout`


class SlurmBackend(Protocol):
    """Answers questions about a cluster.

    Raises SlurmUnreachable when Slurm does not answer, SlurmError when it refuses.
    """

    async def jobs(self, *, ended: bool = False) -> list[Row]:
        """Return the controller's jobs of all accounts. `ended` adds jobs that ended a few minutes ago."""

    async def accounted(
        self, since: int, until: int | None = None, *, names: Sequence[str] = (), ids: Sequence[int] = ()
    ) -> list[Row] | None:
        """Return accounting's rows of jobs with these names or ids, or of all jobs, in a period (unix seconds).

        Returns None where accounting is disabled.
        """

    async def nodes(self, partition: str) -> PartitionNodes:
        """Return a partition with its nodes."""

    async def backlog(self) -> int:
        """Return the number of records that the controller has not yet told to accounting; 0 if it does not say."""


class SlurmCommands:
    """Asks by commands over one login."""

    def __init__(self, login: Runner, flood: FloodWatch, timeout_s: float) -> None:
        self._login = login
        self._flood = flood
        self._timeout_s = timeout_s  # of one command
        self._unknown_words = frozenset[str]()

    async def jobs(self, *, ended: bool = False) -> list[Row]:
        """Run squeue."""
        return await self._ask(Squeue(ended))

    async def accounted(
        self, since: int, until: int | None = None, *, names: Sequence[str] = (), ids: Sequence[int] = ()
    ) -> list[Row] | None:
        """Run sacct."""
        query = Sacct(since, until, names, ids)
        done = await self._run(query)
        if done.exit_status and DISABLED in done.complaint:
            return None
        if done.exit_status:
            raise SlurmUnreachable(f"Slurm's accounting does not answer: {the_complaint(done.complaint)}.")
        return query.parse(done.text)

    async def nodes(self, partition: str) -> PartitionNodes:
        """Run scontrol. Words for nodes that this code does not know are logged once."""
        found = await self._ask(Scontrol(partition))
        for word in found.unknown_words - self._unknown_words:
            log.warning("unknown Slurm state %s of a node, which counts as not usable", word)
        self._unknown_words |= found.unknown_words
        return found

    async def backlog(self) -> int:
        """Run sdiag. A site may keep it from users."""
        try:
            return await self._ask(Sdiag())
        except SlurmUnreachable:
            raise
        except SlurmError:
            return 0

    async def _run(self, query: Query[object]) -> CommandResult:
        done = await self._login.run(["timeout", "-k", "5", f"{self._timeout_s:.0f}", *query.argv()])
        if done.exit_status == NOT_FOUND:
            raise SlurmError(
                f"{query.program} is not on the PATH of the login node.",
                next_step="Set slurm_path in the Slurm login block to the folder of Slurm's commands.",
            )
        return done

    async def _ask(self, query: Query[Answer]) -> Answer:
        """Ask one question. Raises SlurmUnreachable for an outage, and SlurmError for other failures."""
        done = await self._run(query)
        if not done.exit_status:
            return query.parse(done.text)
        message = done.complaint or done.text
        complaint = the_complaint(message) or f"a command ended with status {done.exit_status}"
        if done.exit_status in TIMED_OUT or is_outage(message):
            raise SlurmUnreachable(f"Slurm does not answer: {complaint}.{await self._flood.reason(timed_out=True)}")
        raise SlurmError(f"Slurm refused: {complaint}.")


def no_usable_node(found: PartitionNodes, partition: str) -> SlurmError:
    """Return the error of a partition without a node that can run a job."""
    words = f"No node of the partition {partition} can run a job: "
    if found.nodes:
        return SlurmError(f"{words}{found.why_not()}.", next_step="Jobs are claimed again when a node takes jobs.")
    if found.hidden:
        step = "Add cloud to PrivateData in slurm.conf, which shows powered-down cloud nodes."
        return SlurmError(f"{words}Slurm hides all {found.hidden}.", next_step=step)
    return SlurmError(f"{words}it has none.")
