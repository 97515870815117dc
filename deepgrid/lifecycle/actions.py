"""The actions that `decide` returns for a claimed job. The carrier executes them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from deepgrid.lifecycle.states import JobStatus


class Awaited(Enum):
    """The things that a carrier waits for. The values precede `job 7` in a sentence."""

    SLURM = "the cluster's word on"
    START = "the start of"
    END = "the end of"
    TRACE = "a trace of"
    ROOM = "room in Slurm for"


@dataclass(frozen=True, slots=True)
class Submit:
    """Fetch the definition, render the script, submit it to Slurm (at most once per claim)."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing until something changes."""

    awaited: Awaited


@dataclass(frozen=True, slots=True)
class ReportRunning:
    """Report to the chain that the job runs, and its started minutes so far."""

    elapsed_minutes: int


@dataclass(frozen=True, slots=True)
class ExtendLimit:
    """Raise the job's time limit at Slurm to the time that its credits buy now: `minutes` in all, from its start."""

    minutes: int


@dataclass(frozen=True, slots=True)
class Settle:
    """Report the end, so that the contract pays.

    `minutes` are started minutes, `exit_status` is a wait status. `tombstone` first bars a late start.
    """

    status: JobStatus
    minutes: int
    exit_status: int = 0
    error: str = ""
    tombstone: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """First bar a late start. Then give the job back, so that another cluster can run it."""

    reason: str


@dataclass(frozen=True, slots=True)
class CancelAtSlurm:
    """Bar a late start and cancel all Slurm jobs of this claim."""

    why: str


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do for this claim."""

    reason: str


Action = Submit | Wait | ReportRunning | ExtendLimit | Settle | Refuse | CancelAtSlurm | Done
