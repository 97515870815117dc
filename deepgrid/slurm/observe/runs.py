"""Which records of a claim are runs of its payload, and for how long it ran in all.

The evidence is Slurm's: records of the completion hook, accounting, the controller's memory, and what the supervisor
saw in the queue. No file that the job's account can write decides anything.

The guard ends a script with GUARD_STATUS when a tombstone stands or the mark `run/started` does (see `submit.guarded`).
A payload can end with that status too, and the mark lies in its hands. So such a record counts as a refused start only
if Slurm shows an earlier start of the claim, or if the tombstone was there first. Otherwise it is a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from deepgrid.slurm.observe.commands import FINAL, REQUEUED, Row, wait_status

GUARD_STATUS = 125
GUARDED = wait_status(GUARD_STATUS, 0)
CLOCKS_AGREE_WITHIN_S = 2  # of the login node and of slurmctld
START_TAKES_S = 10  # from the start as slurmctld dates it to the guard's look, on a busy node
REFUSAL_TAKES_S = 60  # at most: what goes on for longer computes, whatever those clocks say


@dataclass(frozen=True, slots=True)
class Marks:
    """When the claim's `run/started` and its tombstone changed last, unix seconds; None where there is none.

    The tombstone is the supervisor's. The other one is the job's to change, so its presence may only speak against the
    job, and its absence for nothing.
    """

    started: int | None = None
    tombstone: int | None = None


NO_MARKS = Marks()
Seen = Mapping[int, int]
"""What the supervisor saw in the queue: by the start of each run, when it saw it run last (unix seconds)."""


def is_refused_start(row: Row, marks: Marks, rows: Iterable[Row] = (), seen: Seen | None = None) -> bool:
    """Whether the guard refused this start, given all `rows` of the claim and what the supervisor saw."""
    if row.exit_status != GUARDED or row.started_at is None:
        return False
    if row.ended_at is not None and row.ended_at - row.started_at > REFUSAL_TAKES_S:
        return False
    looked_at = row.started_at + (START_TAKES_S if marks.started is None else 0)
    if marks.tombstone is not None and marks.tombstone <= looked_at:
        return True
    before = row.started_at - CLOCKS_AGREE_WITHIN_S
    return any(_starts_before(other, row.started_at) for other in rows) or any(start < before for start in seen or ())


def runs_of(rows: Sequence[Row], marks: Marks, seen: Seen | None = None) -> list[Row]:
    """The rows without those of refused starts."""
    return [row for row in rows if not is_refused_start(row, marks, rows, seen)]


def first_end(runs: Iterable[Row]) -> Row | None:
    """The earliest record of a final state, or of a requeue, with a known end: later ones correct it, or restart."""
    ends = [row for row in runs if row.ended_at is not None and (row.state in FINAL or _was_requeued(row))]
    return min(ends, key=lambda row: row.ended_at or 0, default=None)


def was_requeued(rows: Iterable[Row]) -> bool:
    """Whether Slurm queued the job again after a start. Nobody but its owner or an administrator can make it do so."""
    return any(row.restarts > 0 or _was_requeued(row) for row in rows)


def spans(runs: Iterable[Row], seen: Seen | None = None) -> list[tuple[int, int]]:
    """When the payload ran: each run with its first known end, and what was seen, up to the last of these ends."""
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
    """Seconds that these spans cover together; what overlaps counts once."""
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
    """A job that was resized goes on: its next row begins a part, not a start."""
    return row.state != "RESIZING" and row.started_at is not None and row.started_at < start
