"""One look at the cluster, and what follows from it for one claim. Pure: text in, values out.

Whose job a row is: name, comment and Unix account must be the claim's, the account on record since before it was
submitted, and its Slurm id the one that the submit protocol recorded, where it did (Slurm can hand out an id twice).
A claim without an account was never submitted; one that sbatch refused has no job, although Slurm keeps a record of
the refusal; nor is a start that the script's guard refused a run.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from deepgrid.errors import SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import SlurmJob
from deepgrid.slurm.channel import CommandResult
from deepgrid.slurm.commands import FINAL, FORGOTTEN, Completions, Row, Squeue, first_complaint, phase_of
from deepgrid.slurm.login import LoginSettings
from deepgrid.slurm.scripts import call, read_script, whole_answer
from deepgrid.slurm.starts import NO_MARKS, Marks, is_refused_start

_LOOK = read_script("look.sh")


@dataclass(frozen=True, slots=True)
class Records:
    """What accounting or the controller's memory knows of a claim: its end, or else its records without one."""

    end: SlurmJob | None = None
    unfinished: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Look:
    """The queue and the spool at one moment, unix second `clock` of the login node; the grid's jobs of any account.

    `whole` is False where spool or folders of jobs could not be read: then what is not seen is not absent.
    By comment: `users` has the ids of the accounts that claims were submitted under, `ids` the Slurm ids, `marks` what
    starts left behind, `gone` the claims of which nothing is kept, or nothing yet.
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

    def was_tried(self, key: JobKey) -> bool:
        """Whether the claim was ever handed to Slurm; nothing can know a job of another one."""
        return key.comment in self.users

    def queued(self, key: JobKey) -> SlurmJob | None:
        """The claim's job in the queue."""
        rows = self._of(key, self.queue)
        return as_job(rows[0]) if rows else None

    def ended(self, key: JobKey) -> SlurmJob | None:
        """The claim's end by the completion hook: the first final record."""
        return self._end(key, self._runs(key, self._of(key, self.completions)))

    def records_of(self, key: JobKey, rows: Iterable[Row]) -> Records:
        """What rows of accounting or memory tell of the claim, but for what is no run of it."""
        known = [row for row in self._runs(key, self._own(key, rows)) if row.reason != FORGOTTEN]
        end = self._end(key, known)
        return Records(end, () if end else tuple(known))

    def refused_start(self, key: JobKey, rows: Iterable[Row]) -> bool:
        """Whether the guard stopped a start of this claim, by the spool or by these rows."""
        marks = self.marks.get(key.comment, NO_MARKS)
        return any(is_refused_start(row, marks) for row in (*self._of(key, self.completions), *self._own(key, rows)))

    def barred(self, key: JobKey) -> bool:
        """Whether a tombstone stands and the script never came past its guard: nothing of the claim has run."""
        marks = self.marks.get(key.comment, NO_MARKS)
        return marks.tombstone is not None and marks.started is None

    def _end(self, key: JobKey, rows: Iterable[Row]) -> SlurmJob | None:
        end, tombstone = first_end(rows), self.marks.get(key.comment, NO_MARKS).tombstone
        return replace(end, stopped=True) if end and end.state == "CANCELLED" and tombstone is not None else end

    def _own(self, key: JobKey, rows: Iterable[Row]) -> list[Row]:
        return self._of(key, rows, blank_comment=True)

    def _runs(self, key: JobKey, rows: Iterable[Row]) -> list[Row]:
        marks = self.marks.get(key.comment, NO_MARKS)
        return [row for row in rows if not is_refused_start(row, marks)]

    def _of(self, key: JobKey, rows: Iterable[Row], *, blank_comment: bool = False) -> list[Row]:
        slurm_id = self.ids.get(key.comment)
        if slurm_id is None and key.comment in self.refused:
            return []
        return sorted(
            (
                row
                for row in rows
                if row.name == key.name
                and row.user == self.users.get(key.comment)
                and (row.comment == key.comment or (blank_comment and not row.comment and row.slurm_id == slurm_id))
                and slurm_id in (None, row.slurm_id)
            ),
            key=lambda row: row.slurm_id,
        )


def first_end(rows: Iterable[Row]) -> SlurmJob | None:
    """The earliest record of a final state with a known end: later ones are of a second start or of a correction."""
    ends = [row for row in rows if row.state in FINAL and row.ended_at is not None]
    return as_job(min(ends, key=lambda row: row.ended_at or 0)) if ends else None


def as_job(row: Row) -> SlurmJob:
    """A row as the lifecycle sees it."""
    return SlurmJob(
        phase_of(row.state), row.slurm_id, row.state, row.started_at, row.ended_at, row.exit_status, row.reason,
        row.limit_minutes,
    )  # fmt: skip


def look_command(settings: LoginSettings) -> list[str]:
    """The command that looks; the claims to look at are its standard input."""
    return call(_LOOK, settings.grid_root, *Squeue.argv())


def look_input(keys: Iterable[JobKey]) -> bytes:
    return "".join(f"{key.folder} {key.comment}\n" for key in keys).encode()


def parse_look(done: CommandResult) -> Look:
    """Raises SlurmUnreachable when Slurm did not answer or the answer is not whole."""
    lines = [line.split(" ") for line in whole_answer(done)]
    queue: list[Row] | None = None
    completions: list[Row] = []
    users: dict[str, str] = {}
    ids, refused, gone, marks, times, clock = {}, set(), set(), {}, {}, 0
    for line in lines:
        match line:
            case ["queue", "0", rows]:
                queue = Squeue.parse(_decoded(rows))
            case ["queue", _, complaint]:
                raise SlurmUnreachable(f"Slurm does not answer: {first_complaint(_decoded(complaint))}.")
            case ["spool" | "record", records]:
                completions += Completions.parse(_decoded(records))
            case ["clock", seconds] if seconds.isdigit():
                clock = int(seconds)
            case ["marks", found]:
                times = _times(_decoded(found))
            case ["job", comment, slurm_id, was_refused, user, folder]:
                if user.isdigit():
                    users[comment] = user
                if slurm_id.isdigit():
                    ids[comment] = int(slurm_id)
                if was_refused == "yes":
                    refused.add(comment)
                if user == "gone":
                    gone.add(comment)
                marks[comment] = Marks(times.get(f"{folder}/run/started"), times.get(f"{folder}/tombstone"))
    if queue is None:
        raise SlurmUnreachable("The login node gave an answer without a queue.")
    whole = ["unread"] not in lines
    return Look(
        tuple(queue), tuple(completions), users, ids, frozenset(refused), clock, marks, frozenset(gone), whole
    )  # fmt: skip


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode(errors="replace")
    except ValueError:
        raise SlurmUnreachable("The login node gave an answer that makes no sense.") from None


def _times(text: str) -> dict[str, int]:
    """By path below the folder of all jobs, when each file changed last."""
    lines = (line.partition(" ") for line in text.splitlines())
    return {path.rpartition("/jobs/")[2]: int(seconds) for seconds, _, path in lines if seconds.isdigit()}
