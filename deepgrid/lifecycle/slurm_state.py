"""State of one job at Slurm, reduced to what `decide` needs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Phase(Enum):
    """The phase of a claimed job at the cluster."""

    UNKNOWN = "unknown"  # not queried yet, or the login node did not answer: this proves nothing
    ABSENT = "absent"  # queue, spool and accounting have no trace of this claim
    QUEUED = "queued"  # waiting in Slurm
    RUNNING = "running"  # started, no end known
    ENDED = "ended"  # a final record exists


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """One job of this grid as the queue, the spool or the accounting shows it. Times are unix seconds or None.

    `state`: Slurm's name of the state (`COMPLETED`, `TIMEOUT`, ...).
    `exit_status`: a wait status (exit code * 256 + signal).
    `reason`: Slurm's reason text.
    `limit_minutes`: the time limit from the job's start; None when it is unlimited or was not queried.
    `stopped`: the supervisor cancelled the job, or barred it before it could run; no user of the cluster did.
    `cancelled_by_site`: whether another account than the job's own one cancelled it; None if accounting does not say.
    `ran_s`: seconds that an ended job ran in all; None where only its start and end are known.
    `suspended_s`: seconds of that time for which the cluster had suspended the job.
    `requeued`: Slurm queued the job again after a start.
    `began`: the script got past its first lines.
    `nodes`: the nodes that it was given, as Slurm names them (`n[1-2]`).
    """

    phase: Phase
    slurm_id: int | None = None
    state: str = ""
    started_at: int | None = None
    ended_at: int | None = None
    exit_status: int = 0
    reason: str = ""
    limit_minutes: int | None = None
    stopped: bool = False
    ran_s: int | None = None
    requeued: bool = False
    began: bool = False
    nodes: str = ""
    suspended_s: int = 0
    cancelled_by_site: bool | None = None

    @property
    def run_s(self) -> int:
        """Seconds that an ended job ran without its suspensions; 0 if it never started."""
        if self.started_at is None or self.ended_at is None:
            return 0
        ran_s = self.ended_at - self.started_at if self.ran_s is None else self.ran_s
        return max(0, ran_s - self.suspended_s)

    @property
    def placed(self) -> bool:
        """Whether Slurm's scheduler has processed the job: it was started, or it has a reason to wait."""
        waits = self.phase is Phase.QUEUED and self.reason not in ("", "None")
        return waits or self.phase in (Phase.RUNNING, Phase.ENDED)


UNKNOWN = SlurmJob(Phase.UNKNOWN)
ABSENT = SlurmJob(Phase.ABSENT)
