"""One look at the cluster, and what follows from it for one claim. Pure: text in, values out.

Whose job a row is: its Slurm id is the one that the submit protocol recorded for the claim, its Unix account the one on
record since before it was submitted, and Slurm took it when that is recorded, unless the job was queued again. A
completion record must hold the claim's name and comment besides; where the id was never recorded it is found by them. A
claim without an account was never submitted; one that sbatch refused has no job, although Slurm keeps a record of the
refusal; one whose id was handed out again has no job either.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from deepgrid.errors import SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.slurm.observe.commands import (
    FORGOTTEN,
    REQUEUED,
    Completions,
    Row,
    Squeue,
    first_complaint,
    is_id,
    phase_of,
)
from deepgrid.slurm.observe.runs import (
    CLOCKS_AGREE_WITHIN_S,
    GUARDED,
    NO_MARKS,
    Marks,
    Seen,
    first_end,
    is_refused_start,
    runs_of,
    seconds_in,
    spans,
    was_requeued,
)
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.login import LoginSettings
from deepgrid.slurm.ssh.scripts import call, lines_of, read_script, whole_answer

_LOOK = read_script("identity.sh", "snapshot.sh")


@dataclass(frozen=True, slots=True)
class Records:
    """What accounting or the controller's memory knows of a claim: its end, or else its records without one."""

    end: SlurmJob | None = None
    unfinished: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The queue and the spool at one moment, unix second `clock` of the login node.

    `queue` has the rows of the watched claims, `held` how many jobs of anybody the whole queue holds.
    `whole` is False where spool or folders of jobs could not be read: then what is not seen is not absent.
    By comment: `users` has the ids of the accounts that claims were submitted under, `ids` the Slurm ids, `taken` when
    Slurm took their jobs where that is known, `marks` what
    starts left behind, `gone` the claims of which nothing is kept, or nothing yet, `reissued` those whose id is another
    claim's by now.
    """

    queue: tuple[Row, ...]
    completions: tuple[Row, ...]
    users: dict[str, str] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()
    clock: int = 0
    marks: dict[str, Marks] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    whole: bool = True
    held: int = 0
    reissued: frozenset[str] = frozenset()
    taken: dict[str, int] = field(default_factory=dict)

    def was_tried(self, key: JobKey) -> bool:
        """Whether the claim was ever handed to Slurm; nothing can know a job of another one."""
        return key.comment in self.users

    def queued(self, key: JobKey) -> SlurmJob | None:
        """The claim's job in the queue."""
        rows = self._of(key, self.queue)
        if not rows:
            return None
        requeued = was_requeued((*rows, *self._recorded(key)))
        return as_job(rows[0], requeued=requeued, began=self.marks_of(key).started is not None)

    def ended(self, key: JobKey, seen: Seen | None = None) -> SlurmJob | None:
        """The claim's end by the completion hook: the first final record, and how long it ran by all of them."""
        return self._end(key, self._recorded(key), seen)

    def records_of(self, key: JobKey, rows: Iterable[Row], seen: Seen | None = None) -> Records:
        """What rows of accounting or memory tell of the claim, but for what is no run of it."""
        known = [row for row in self._of(key, rows) if row.reason != FORGOTTEN]
        if end := self._end(key, [*self._recorded(key), *known], seen):
            return Records(end)
        return Records(None, tuple(runs_of(known, self.marks_of(key), seen)))

    def refused_start(self, key: JobKey, rows: Iterable[Row], seen: Seen | None = None) -> bool:
        """Whether the guard stopped a start of this claim, by the spool or by these rows."""
        known = [*self._recorded(key), *self._of(key, rows)]
        return any(is_refused_start(row, self.marks_of(key), known, seen) for row in known)

    def is_unclear(self, key: JobKey, end: SlurmJob) -> bool:
        """Whether this end may be of a second start of which the spool knows no first: its mark was there before it.

        Either the controller lost the first start, or the job's account made the mark. Accounting may tell.
        """
        marked_at = self.marks_of(key).started
        if end.exit_status != GUARDED or end.started_at is None or marked_at is None:
            return False
        return marked_at < end.started_at - CLOCKS_AGREE_WITHIN_S

    def barred(self, key: JobKey) -> bool:
        """Whether a tombstone stands and the script never came past its guard: nothing of the claim has run."""
        marks = self.marks_of(key)
        return marks.tombstone is not None and marks.started is None

    def marks_of(self, key: JobKey) -> Marks:
        return self.marks.get(key.comment, NO_MARKS)

    def _end(self, key: JobKey, rows: Sequence[Row], seen: Seen | None) -> SlurmJob | None:
        """The first end of a run. A job that was queued again and only refused to start ended before, when requeued."""
        marks = self.marks_of(key)
        runs = runs_of(rows, marks, seen)
        end = first_end(runs)
        if end is None:
            end = first_end(row for row in rows if row.restarts > 0)
        if end is None:
            return None
        found = spans([*runs, end], seen)
        return as_job(
            end,
            requeued=was_requeued(rows),
            began=marks.started is not None,
            stopped=end.state == "CANCELLED" and marks.tombstone is not None,
            ran_s=seconds_in(found) if found else None,
            started_at=min((start for start, _ in found), default=end.started_at),
        )

    def _recorded(self, key: JobKey) -> list[Row]:
        """The claim's completion records."""
        slurm_id = self.ids.get(key.comment)
        if slurm_id is None and key.comment in self.refused:
            return []
        return [
            row
            for row in self.completions
            if row.comment == key.comment
            and row.name == key.name
            and row.user == self.users.get(key.comment)
            and slurm_id in (None, row.slurm_id)
        ]

    def _of(self, key: JobKey, rows: Iterable[Row]) -> list[Row]:
        """The rows of the claim's job, by its id on record, its account, and when Slurm took it."""
        if key.comment in self.reissued:
            return []
        slurm_id, user, taken = self.ids.get(key.comment), self.users.get(key.comment), self.taken.get(key.comment)
        return [row for row in rows if row.slurm_id == slurm_id and row.user == user and row.may_be_of(taken)]


def as_job(
    row: Row,
    *,
    requeued: bool = False,
    began: bool = False,
    stopped: bool = False,
    ran_s: int | None = None,
    started_at: int | None = None,
) -> SlurmJob:
    """A row as the lifecycle sees it; `started_at` is the claim's first start where that is not the row's."""
    phase = Phase.ENDED if row.state == REQUEUED and row.ended_at is not None else phase_of(row.state)
    return SlurmJob(
        phase, row.slurm_id, row.state, started_at or row.started_at, row.ended_at, row.exit_status, row.reason,
        row.limit_minutes, stopped, ran_s, requeued, began,
    )  # fmt: skip


def snapshot_command(settings: LoginSettings) -> list[str]:
    """The command that looks; the claims to look at are its standard input."""
    return call(_LOOK, settings.grid_root, *Squeue.argv())


def snapshot_input(keys: Iterable[JobKey]) -> bytes:
    return "".join(f"{key.folder} {key.comment}\n" for key in keys).encode()


def parse_snapshot(done: CommandResult) -> Snapshot:
    """Raises SlurmUnreachable when Slurm did not answer or the answer is not whole."""
    lines = [line.split(" ") for line in whole_answer(done)]
    queue: list[Row] | None = None
    completions: list[Row] = []
    users: dict[str, str] = {}
    ids, taken, states, gone, marks, times, clock, held = {}, {}, {}, set(), {}, {}, 0, 0
    for line in lines:
        match line:
            case ["queue", "0", rows]:
                queue = Squeue.parse(_decoded(rows))
            case ["queue", _, complaint]:
                raise SlurmUnreachable(f"Slurm does not answer: {first_complaint(_decoded(complaint))}.")
            case ["spool" | "record", records]:
                completions += Completions.parse(_decoded(records))
            case ["clock", seconds] if is_id(seconds):
                clock = int(seconds)
            case ["marks", found]:
                times = _times(_decoded(found))
            case ["held", jobs] if is_id(jobs):
                held = int(jobs)
            case ["job", comment, slurm_id, taken_at, state, user, folder]:
                if is_id(user):
                    users[comment] = user
                if is_id(slurm_id):
                    ids[comment] = int(slurm_id)
                if is_id(taken_at):
                    taken[comment] = int(taken_at)
                states[comment] = state
                if user == "gone":
                    gone.add(comment)
                marks[comment] = Marks(times.get(f"{folder}/run/started"), times.get(f"{folder}/tombstone"))
    if queue is None:
        raise SlurmUnreachable("The login node gave an answer without a queue.")
    whole = ["unread"] not in lines
    refused, reissued = (
        frozenset(c for c, state in states.items() if state == word) for word in ("refused", "reissued")
    )
    return Snapshot(
        tuple(queue), tuple(completions), users, ids, refused, clock, marks, frozenset(gone), whole, held, reissued,
        taken,
    )  # fmt: skip


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode(errors="replace")
    except ValueError:
        raise SlurmUnreachable("The login node gave an answer that makes no sense.") from None


def _times(text: str) -> dict[str, int]:
    """By path below the folder of all jobs, when each file changed last."""
    lines = (line.partition(" ") for line in lines_of(text))
    return {path.rpartition("/jobs/")[2]: int(seconds) for seconds, _, path in lines if is_id(seconds)}
