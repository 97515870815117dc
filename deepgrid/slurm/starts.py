"""Which records are of a start that the script's guard refused: no run, never an end, never billed.

The guard ends a script with GUARD_STATUS when a tombstone stands or the mark `run/started` does (see
`submit.guarded`). A payload can end with that status too, and then it ran. What tells them apart is time: the kernel's
change time of the mark, which a job can move forward only. An earlier start made the mark before this one began; the
payload's own start made it after. A payload that touches its mark only makes its own runs count.

A claim may also be cancelled after Slurm dated the start and before the guard looked; then no mark was ever made. A
payload that takes its mark away and is cancelled so early looks the same, and has run for seconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from deepgrid.slurm.commands import Row, wait_status

GUARD_STATUS = 125
GUARDED = wait_status(GUARD_STATUS, 0)
CLOCKS_AGREE_WITHIN_S = 2  # of the file system, which dates marks, and of slurmctld, which dates starts
START_TAKES_S = 10  # from the start as slurmctld dates it to the guard's look, on a busy node
REFUSAL_TAKES_S = 60  # at most: what goes on for longer computes, whatever those clocks say


@dataclass(frozen=True, slots=True)
class Marks:
    """When the claim's `run/started` and its tombstone changed last, unix seconds; None where there is none."""

    started: int | None = None
    tombstone: int | None = None


NO_MARKS = Marks()


def is_refused_start(row: Row, marks: Marks) -> bool:
    """Whether this record is of a start after the mark of an earlier one, or after the tombstone."""
    if row.exit_status != GUARDED or row.started_at is None:
        return False
    looked_at = row.started_at + (START_TAKES_S if marks.started is None else 0)
    if marks.tombstone is not None and marks.tombstone <= looked_at:
        return True
    if marks.started is None or marks.started >= row.started_at - CLOCKS_AGREE_WITHIN_S:
        return False
    return row.ended_at is None or row.ended_at - row.started_at <= REFUSAL_TAKES_S
