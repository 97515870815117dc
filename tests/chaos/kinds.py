"""The kinds of jobs of a batch: their commands, and the ends that they must have when only the supervisor fails.

Each job first records its start in its own file, so that a payload that ran twice is detected.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum

from deepgrid import workflow
from deepgrid.lifecycle.states import JobStatus

HEAD = "enableLogging: true\nresources: {tasks: 1, cpusPerTask: 1, memPerCpu: 100, gpus: 0}\n"


class Steering(Enum):
    """The customer's action on a job in flight."""

    NOTHING = "nothing"
    CANCEL = "cancel"
    TOP_UP = "top up"


@dataclass(frozen=True)
class Kind:
    """`command` may contain {open}, a file that the round creates to release the job.

    The customer may act in the states `steer_at`.
    `exit_status` is None where any status except 0 is correct. The credits buy `minutes_locked` minutes; 0 means
    plenty.
    """

    name: str
    command: str
    ends: frozenset[JobStatus]
    exit_status: int | None = 0
    steering: Steering = Steering.NOTHING
    steer_at: tuple[JobStatus, ...] = (JobStatus.RUNNING,)
    minutes_locked: int = 0
    weight: int = 2
    long: bool = False


def _kind(name: str, command: str, *ends: JobStatus, **rest: object) -> Kind:
    return Kind(name, command, frozenset(ends), **rest)  # type: ignore[arg-type]


UNTIL_OPEN = "until [ -e {open} ]; do sleep 0.5; done"
KINDS = {
    kind.name: kind
    for kind in (
        _kind("instant", "true", JobStatus.FINISHED, weight=4),
        _kind("short", "sleep 1", JobStatus.FINISHED),
        _kind("four seconds", "sleep 4", JobStatus.FINISHED),
        _kind("exit 3", "exit 3", JobStatus.FAILED, exit_status=768),
        _kind("killed", "kill -KILL $$", JobStatus.FAILED, exit_status=None),
        _kind("held", UNTIL_OPEN, JobStatus.FINISHED),
        _kind("topped up", UNTIL_OPEN, JobStatus.FINISHED, steering=Steering.TOP_UP),
        _kind(
            "topped up early", UNTIL_OPEN, JobStatus.FINISHED, steering=Steering.TOP_UP,
            steer_at=(JobStatus.SCHEDULED,), weight=1,
        ),
        _kind(
            "cancelled early", "sleep 600", JobStatus.CANCELLED, exit_status=None, steering=Steering.CANCEL,
            steer_at=(JobStatus.PENDING, JobStatus.META_SCHEDULED, JobStatus.SCHEDULED), weight=1,
        ),
        _kind("cancelled", "sleep 600", JobStatus.CANCELLED, exit_status=None, steering=Steering.CANCEL),
        _kind(
            "past its limit", "sleep 600", JobStatus.OUT_OF_CREDITS, exit_status=None, minutes_locked=1,
            weight=1, long=True,
        ),
    )
}  # fmt: skip


def slurm_name(job_id: int) -> str:
    """Return the name of the job in Slurm, and of its files in both folders of `definition`."""
    return f"dg-{job_id}"


def definition(kind: Kind, starts: str, gates: str) -> workflow.Definition:
    """Return the kind's workflow.

    Jobs write their starts into `starts` and find the file that releases them in `gates`.
    """
    note = f'echo "$SLURM_JOB_ID" >> {starts}/"$SLURM_JOB_NAME"'
    gate = f'{gates}/"$SLURM_JOB_NAME"'
    command = f"{note}; {kind.command.format(open=gate)}"
    return workflow.parse(HEAD + f"steps:\n  - run: {{command: {json.dumps(command)}}}\n", kind.name).model
