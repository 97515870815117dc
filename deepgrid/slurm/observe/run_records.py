"""Decides which records of a claim are runs of its payload, and how long the payload ran in total.

All evidence comes from Slurm: records of the completion hook, accounting, the controller's memory, and the queue as the
supervisor saw it. Files that the job's account can write decide nothing.

The guard ends a script with GUARD_STATUS if a tombstone exists, or if it cannot remove the file `run/unstarted` (see
`protocol.guarded`). A payload can also end with that status. So such a record counts as a refused start only if Slurm
shows an earlier start of the claim, or if there is a tombstone and the file `run/unstarted` is still the one that the
supervisor made: the job's account cannot make it again. Otherwise it is a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.commands.job_states import FINAL, REQUEUED
from deepgrid.slurm.commands.versions import wait_status

GUARD_STATUS = 125
GUARDED = wait_status(GUARD_STATUS, 0)
CLOCK_SKEW_S = 2  # at most, between the login node and slurmctld
LONGEST_REFUSAL_S = 60  # a start that lasts longer is a run, independent of the clocks


@dataclass(frozen=True, slots=True)
class Marks:
    """Files of a claim on the login node. `started` is whether `run/unstarted` is no longer the file that we made.

    Only the supervisor can make these files. The job's account can remove `run/unstarted`, which only counts against
    the job.
    """

    started: bool = False
    tombstone: bool = False


NO_MARKS = Marks()
Seen = Mapping[int, int]
"""Runs that the supervisor saw in the queue: start of the run -> when it was last seen running (unix seconds)."""


def is_refused_start(row: Row, marks: Marks, rows: Iterable[Row] = (), seen: Seen | None = None) -> bool:
    """Return whether the guard refused this start, by all `rows` of the claim and the runs that the supervisor saw."""
    if row.exit_status != GUARDED or row.started_at is None:
        return False
    if row.ended_at is not None and row.ended_at - row.started_at > LONGEST_REFUSAL_S:
        return False
    if marks.tombstone and not marks.started:
        return True
    before = row.started_at - CLOCK_SKEW_S
    return any(_starts_before(other, row.started_at) for other in rows) or any(start < before for start in seen or ())


def was_stopped_before_its_script(row: Row, marks: Marks) -> bool:
    """Return whether the supervisor cancelled the job while its nodes booted or the prolog ran, so that nothing ran."""
    return row.state == "CANCELLED" and marks.tombstone and not marks.started


def may_have_run_nothing(row: Row) -> bool:
    """Return whether the claim's marks could show that nothing ran in this start."""
    return row.exit_status == GUARDED or row.state == "CANCELLED"


def runs_of(rows: Sequence[Row], marks: Marks, seen: Seen | None = None) -> list[Row]:
    """Return the rows that are not refused starts."""
    return [row for row in rows if not is_refused_start(row, marks, rows, seen)]


def first_end(runs: Iterable[Row]) -> Row | None:
    """Return the earliest final or requeued record with a known end. Later records are corrections or restarts."""
    ends = [row for row in runs if row.ended_at is not None and (row.state in FINAL or _was_requeued(row))]
    return min(ends, key=lambda row: row.ended_at or 0, default=None)


def was_requeued(rows: Iterable[Row]) -> bool:
    """Return whether Slurm requeued the job after a start. Only its owner or an administrator can cause that."""
    return any(row.restarts > 0 or _was_requeued(row) for row in rows)


def spans(runs: Iterable[Row], seen: Seen | None = None) -> list[tuple[int, int]]:
    """Return when the payload ran: each run to its first known end, and the seen runs, up to the last known end."""
    ends: dict[int, int] = {}
    for row in runs:
        if row.started_at is not None and row.ended_at is not None:
            ends[row.started_at] = min(row.ended_at, ends.get(row.started_at, row.ended_at))
    last = max(ends.values(), default=None)
    found = list(ends.items())
    for start, until in (seen or {}).items():
        found.append((start, until if last is None else min(until, last)))
    return [(start, end) for start, end in found if end >= start]


def seconds_in(found: Iterable[tuple[int, int]]) -> int:
    """Return the seconds that these spans cover together. Overlaps count once."""
    total, reached = 0, None
    for start, end in sorted(found):
        if reached is None or start > reached:
            total, reached = total + end - start, end
        elif end > reached:
            total, reached = total + end - reached, end
    return total


def _was_requeued(row: Row) -> bool:
    return row.state == REQUEUED and row.started_at is not None and row.ended_at is not None


def _starts_before(row: Row, start: int) -> bool:
    """Return whether `row` started before `start`.

    The row of a resized job does not count: its next row is not a new start.
    """
    return row.state != "RESIZING" and row.started_at is not None and row.started_at < start
