"""`sacct`: the jobs in Slurm's accounting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.commands.job_states import REQUEUED
from deepgrid.slurm.commands.query import COMMAND_PREFIX, columns, duration_s, is_id, seconds, utc
from deepgrid.slurm.commands.tres import TRES_OF_GPUS, allocation
from deepgrid.slurm.commands.versions import accounted_exit

_FIELDS = "JobIDRaw,UID,State,ExitCode,Submit,Start,End,NodeList,Suspended,AllocTRES,ReqTRES"
# The message of a cluster without accounting.
DISABLED = "storage is disabled"
# Reason of an accounting record that only closes a job whose controller lost its state.
FORGOTTEN_REASON = "forgotten"
# After a record of such a state the job can have another record. NODE_FAIL is not listed: when a controller loses its
# state, accounting marks all its jobs so. Runs that do follow a NODE_FAIL have completion records.
_CAN_CONTINUE = {REQUEUED, "RESIZING", "BOOT_FAIL", "PREEMPTED"}


@dataclass(frozen=True, slots=True)
class Sacct:
    """The jobs of all accounts that existed in this period (unix seconds), with these names or ids, or all.

    The answer has every record of each job: Slurm reuses ids, and jobs can run twice. The comment is not queried: a
    job's account can change it in accounting at any time (`sacctmgr modify job`).
    """

    program: ClassVar[str] = "sacct"
    since: int
    until: int | None = None
    names: Sequence[str] = ()
    ids: Sequence[int] = ()

    def argv(self) -> list[str]:
        """Return the command line."""
        options = ["-S", utc(self.since), *(("-E", utc(self.until)) if self.until is not None else ())]
        options += ["--name", ",".join(self.names)] if self.names else []
        options += ["-j", ",".join(map(str, self.ids))] if self.ids else []
        return [*COMMAND_PREFIX, "sacct", "-n", "-P", "-X", "-a", "-D", "--noconvert", *options, "-o", _FIELDS]

    @staticmethod
    def parse(text: str) -> list[Row]:
        """Return a row per record."""
        rows = []
        counts_gpus = TRES_OF_GPUS in text
        for slurm_id, user, state, code, taken, start, end, nodes in columns(text, 8):
            # Slurm names the user who cancelled ("CANCELLED by 0"). Without a user, the controller had lost the job.
            reason = FORGOTTEN_REASON if state == "CANCELLED" else ""
            state, _, canceller = state.partition(" by ")
            nodes, suspended, given, wanted, *_ = [*nodes.split("|"), "", "", ""]
            started_at = None if nodes in ("", "None assigned") else seconds(start)
            ended_at, taken_at, status = seconds(end), seconds(taken), accounted_exit(code, state)
            ran = Row(int(slurm_id), user, state, started_at, ended_at, status, reason, taken_at=taken_at)
            by = canceller if is_id(canceller) else ""
            rows.append(
                replace(
                    ran,
                    nodes="" if started_at is None else nodes,
                    cancelled_by=by,
                    suspended_s=duration_s(suspended) or 0,
                    given=allocation(given, wanted, counts_gpus=counts_gpus),
                )
            )
        first: dict[tuple[int, str], int] = {}  # by id and account: the earliest record that can have a successor
        for row in rows:
            if row.state in _CAN_CONTINUE and row.taken_at is not None:
                key = row.slurm_id, row.user
                first[key] = min(row.taken_at, first.get(key, row.taken_at))
        return [replace(row, follows=True) if _is_later(row, first) else row for row in rows]


def _is_later(row: Row, first: Mapping[tuple[int, str], int]) -> bool:
    """Return whether Slurm accepted this row's job after the job of the same id and account in `first`."""
    since = first.get((row.slurm_id, row.user))
    return since is not None and row.taken_at is not None and row.taken_at > since
