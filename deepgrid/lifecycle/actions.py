"""What can be done next for a claimed job: the vocabulary between `decide` and whoever acts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from deepgrid.lifecycle.states import JobStatus


class Awaited(Enum):
    """What a carrier waits for; the values go before `job 7`."""

    SLURM = "the cluster's word on"
    START = "the start of"
    END = "the end of"
    TRACE = "a trace of"


@dataclass(frozen=True, slots=True)
class Submit:
    """Fetch the definition, render the script, hand it to Slurm (at most once per claim)."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do until something changes."""

    awaited: Awaited


@dataclass(frozen=True, slots=True)
class ReportRunning:
    """Tell the chain that the job runs, and for how many started minutes already."""

    elapsed_minutes: int


@dataclass(frozen=True, slots=True)
class ExtendLimit:
    """Give the job at Slurm the time that its credits buy by now: `minutes` from its start, in all."""

    minutes: int


@dataclass(frozen=True, slots=True)
class Settle:
    """Report the end; the contract pays. `tombstone` bars a late start first.

    `minutes` are started minutes, `exit_status` is a wait status.
    """

    status: JobStatus
    minutes: int
    exit_status: int = 0
    error: str = ""
    tombstone: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """Give the job back, so that another cluster can run it; bars a late start first."""

    reason: str


@dataclass(frozen=True, slots=True)
class CancelAtSlurm:
    """Bar a late start and cancel whatever Slurm holds of this claim."""

    why: str


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do for this claim."""

    reason: str


Action = Submit | Wait | ReportRunning | ExtendLimit | Settle | Refuse | CancelAtSlurm | Done
