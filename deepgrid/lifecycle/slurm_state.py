"""What Slurm says about one job, reduced to what the lifecycle needs to decide."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Phase(Enum):
    """Where a claimed job stands at the cluster."""

    UNKNOWN = "unknown"  # nothing may be concluded: not asked yet, or the login node did not answer
    ABSENT = "absent"  # asked queue, spool and accounting: no trace of this claim
    QUEUED = "queued"  # waiting in Slurm
    RUNNING = "running"  # started, and not known to have ended
    ENDED = "ended"  # a final record exists


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """One job of this grid as the queue, the spool or the accounting shows it.

    `state` is Slurm's own word (`COMPLETED`, `TIMEOUT`, ...), `exit_status` a wait status
    (exit code * 256 + signal), `reason` Slurm's reason text, times unix seconds or None. `limit_minutes`
    is the time that Slurm gives the job from its start, None when that was not asked or is unlimited. `stopped` tells
    that the supervisor cancelled it, not somebody at the cluster; of an absent one, before it could run.

    Of an ended one, `ran_s` is for how many seconds it ran in all, None where nothing but its start and end is known.
    `requeued` tells that Slurm queued it again after a start, `began` that its script came past its first lines.
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

    @property
    def placed(self) -> bool:
        """Whether Slurm's scheduler has come to it: it was started, or there is a reason for which it waits."""
        waits = self.phase is Phase.QUEUED and self.reason not in ("", "None")
        return waits or self.phase in (Phase.RUNNING, Phase.ENDED)


UNKNOWN = SlurmJob(Phase.UNKNOWN)
ABSENT = SlurmJob(Phase.ABSENT)
