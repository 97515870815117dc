"""A snapshot of queue and spool, and what it says about one claim. Pure: text in, values out.

A row belongs to a claim if all of this holds:

* Its Slurm id is the id that the submit protocol recorded for the claim.
* Its Unix account is the account that was recorded before the submission.
* Slurm accepted it at the recorded time, unless the job was requeued.

A completion record must also contain the claim's name and comment. If the id was never recorded, they identify the
record. A claim without an account was never submitted. A claim that sbatch refused has no job, although Slurm keeps a
record of the refusal. A claim whose id Slurm gave out again has no job either.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from deepgrid.errors import SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase, SlurmJob
from deepgrid.slurm.commands.complaints import the_complaint
from deepgrid.slurm.commands.completions import Completions
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.commands.job_states import REQUEUED, TIMED, phase_of
from deepgrid.slurm.commands.query import is_id
from deepgrid.slurm.commands.sacct import FORGOTTEN_REASON
from deepgrid.slurm.commands.squeue import Squeue
from deepgrid.slurm.observe.run_records import (
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
    was_stopped_before_its_script,
)
from deepgrid.slurm.ssh.channel import CommandResult
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.slurm.ssh.scripts import call, lines_of, read_script, whole_answer

_SNAPSHOT = read_script("identity.sh", "snapshot.sh")


@dataclass(frozen=True, slots=True)
class Records:
    """What accounting or the controller knows about a claim: its end, or the records without an end."""

    end: SlurmJob | None = None
    unfinished: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The queue and the spool at one point in time. Facts about claims are keyed by the claim's comment."""

    queue: tuple[Row, ...]  # rows of the watched claims
    completions: tuple[Row, ...]
    users: dict[str, str] = field(default_factory=dict)  # ids of the accounts under which claims were submitted
    ids: dict[str, int] = field(default_factory=dict)  # Slurm ids
    refused: frozenset[str] = frozenset()  # claims that sbatch refused
    clock: int = 0  # unix seconds of the login node
    marks: dict[str, Marks] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()  # claims without a folder: not created yet, or removed
    whole: bool = True  # False if spool or job folders could not be read; then a missing claim may still exist
    held: int = 0  # number of jobs in the whole queue, of all users
    reissued: frozenset[str] = frozenset()  # claims whose id now belongs to another claim
    taken: dict[str, int] = field(default_factory=dict)  # when Slurm accepted the jobs, if known

    def was_tried(self, key: JobKey) -> bool:
        """Return whether the claim was ever handed to Slurm. If not, no source can know a job of it."""
        return key.comment in self.users

    def queued(self, key: JobKey) -> SlurmJob | None:
        """Return the claim's job in the queue, if it is there."""
        rows = self._of(key, self.queue)
        if not rows:
            return None
        requeued = was_requeued((*rows, *self._recorded(key)))
        return replace(as_job(rows[0]), requeued=requeued, began=self.marks_of(key).started)

    def suspended_s(self, key: JobKey) -> int:
        """Return how long the cluster has suspended the claim's job so far, if the job is in the queue.

        The clock was read before the queue, so time that Slurm did not count was spent suspended. This is true only
        while Slurm counts. It stops at the end of the script, although the job may be COMPLETING for minutes.
        """
        rows = [row for row in self._of(key, self.queue) if row.state in TIMED]
        times = [(row.started_at, row.used_s) for row in rows]
        return max((self.clock - start - used for start, used in times if start and used is not None), default=0)

    def is_preempted(self, key: JobKey, rows: Iterable[Row] = ()) -> bool:
        """Return whether the queue or these rows show that Slurm preempts the claim's job. No account can fake this."""
        return any(row.preempted for row in self._of(key, (*self.queue, *rows)))

    def ended(self, key: JobKey, seen: Seen | None = None) -> SlurmJob | None:
        """Return the claim's end from the completion hook: its first final record, with the run time of all records."""
        return self._end(key, self._recorded(key), seen)

    def records_of(self, key: JobKey, rows: Iterable[Row], seen: Seen | None = None) -> Records:
        """Return the claim's runs from rows of accounting or of the controller's memory."""
        known = [row for row in self._of(key, rows) if row.reason != FORGOTTEN_REASON]
        if end := self._end(key, [*self._recorded(key), *known], seen):
            return Records(end)
        return Records(None, tuple(runs_of(known, self.marks_of(key), seen)))

    def refused_start(self, key: JobKey, rows: Iterable[Row], seen: Seen | None = None) -> bool:
        """Return whether the spool or these rows show that the guard refused a start of this claim."""
        known = [*self._recorded(key), *self._of(key, rows)]
        return any(is_refused_start(row, self.marks_of(key), known, seen) for row in known)

    def is_unclear(self, key: JobKey, end: SlurmJob) -> bool:
        """Return whether accounting may know more about this end.

        No other source says who cancelled a job. An end may also belong to a second start, even if the spool has no
        first one. Either the controller lost the first start and the guard refused the second, or the payload exited
        with the guard's status.
        """
        if self.lacks_canceller(key, end):
            return True
        return end.exit_status == GUARDED and end.started_at is not None and self.marks_of(key).started

    def lacks_canceller(self, key: JobKey, end: SlurmJob) -> bool:
        """Return whether the job was cancelled while it ran, not by the supervisor, and no source says who did it."""
        unknown = end.cancelled_by_site is None and not end.stopped and not end.requeued
        return end.state == "CANCELLED" and end.started_at is not None and unknown

    def barred(self, key: JobKey) -> bool:
        """Return whether a tombstone exists and the script never passed its guard: nothing of the claim has run."""
        marks = self.marks_of(key)
        return marks.tombstone and not marks.started

    def marks_of(self, key: JobKey) -> Marks:
        return self.marks.get(key.comment, NO_MARKS)

    def _end(self, key: JobKey, rows: Sequence[Row], seen: Seen | None) -> SlurmJob | None:
        """Return the first end of a run. If the guard refused all starts after a requeue, that is the end."""
        marks = self.marks_of(key)
        runs = runs_of(rows, marks, seen)
        end = first_end(runs)
        if end is None:
            end = first_end(row for row in rows if row.restarts > 0)
        if end is None:
            return None
        found = spans([*runs, end], seen)
        cancellers = {row.cancelled_by for row in rows} - {""}
        requeued = was_requeued(rows)
        if was_stopped_before_its_script(end, marks) and not requeued:  # Slurm counts from the allocation on
            return replace(as_job(end), started_at=None, stopped=True)
        return replace(
            as_job(end),
            requeued=requeued,
            began=marks.started,
            stopped=end.state == "CANCELLED" and marks.tombstone,
            suspended_s=max((row.suspended_s for row in rows), default=0),
            cancelled_by_site=self.users.get(key.comment) not in cancellers if cancellers else None,
            ran_s=seconds_in(found) if found else None,
            started_at=min((start for start, _ in found), default=end.started_at),
        )

    def _recorded(self, key: JobKey) -> list[Row]:
        slurm_id = self.ids.get(key.comment)
        if slurm_id is None and key.comment in self.refused:
            return []
        return [
            row
            for row in self.completions
            if row.comment == key.comment
            and row.name in key.names
            and row.user == self.users.get(key.comment)
            and slurm_id in (None, row.slurm_id)
        ]

    def _of(self, key: JobKey, rows: Iterable[Row]) -> list[Row]:
        """Return the rows that match the claim's recorded id, its account, and the time when Slurm accepted it."""
        if key.comment in self.reissued:
            return []
        slurm_id, user, taken = self.ids.get(key.comment), self.users.get(key.comment), self.taken.get(key.comment)
        return [row for row in rows if row.slurm_id == slurm_id and row.user == user and row.may_be_of(taken)]


def as_job(row: Row) -> SlurmJob:
    """Convert a row to the lifecycle's `SlurmJob`."""
    phase = Phase.ENDED if row.state == REQUEUED and row.ended_at is not None else phase_of(row.state)
    end = row.exit_status, row.reason, row.limit_minutes
    return SlurmJob(phase, row.slurm_id, row.state, row.started_at, row.ended_at, *end, nodes=row.nodes)


def snapshot_command(settings: LoginSettings) -> list[str]:
    """Return the command that takes a snapshot. It reads `snapshot_input` on standard input."""
    return call(_SNAPSHOT, settings.grid_root, *Squeue().argv())


def snapshot_input(keys: Iterable[JobKey]) -> bytes:
    """Return the watched claims, one per line."""
    return "".join(f"{key.folder} {key.comment}\n" for key in keys).encode()


def parse_snapshot(done: CommandResult) -> Snapshot:
    """Parse the answer of `snapshot.sh`. Raises SlurmUnreachable if Slurm did not answer or the answer was cut off."""
    lines = [line.split(" ") for line in whole_answer(done)]
    queue: list[Row] | None = None
    completions: list[Row] = []
    users: dict[str, str] = {}
    ids, taken, states, gone, marks, files, clock, held = {}, {}, {}, set(), {}, {}, 0, 0
    for line in lines:
        match line:
            case ["queue", "0", rows]:
                queue = Squeue.parse(_decode(rows))
            case ["queue", _, complaint]:
                raise SlurmUnreachable(f"Slurm does not answer: {the_complaint(_decode(complaint))}.")
            case ["spool" | "record", records]:
                completions += Completions.parse(_decode(records))
            case ["clock", seconds] if is_id(seconds):
                clock = int(seconds)
            case ["marks", found]:
                files = _files(_decode(found))
            case ["held", jobs] if is_id(jobs):
                held = int(jobs)
            case ["job", comment, slurm_id, taken_at, state, user, ticket, folder]:
                if is_id(user):
                    users[comment] = user
                if is_id(slurm_id):
                    ids[comment] = int(slurm_id)
                if is_id(taken_at):
                    taken[comment] = int(taken_at)
                states[comment] = state
                if user == "gone":
                    gone.add(comment)
                marks[comment] = Marks(files.get(f"{folder}/run/unstarted") != ticket, f"{folder}/tombstone" in files)
    if queue is None:
        raise SlurmUnreachable("The login node gave an answer without a queue.")
    whole = ["unread"] not in lines
    refused = frozenset(comment for comment, state in states.items() if state == "refused")
    reissued = frozenset(comment for comment, state in states.items() if state == "reissued")
    return Snapshot(
        tuple(queue), tuple(completions), users, ids, refused, clock, marks, frozenset(gone), whole, held, reissued,
        taken,
    )  # fmt: skip


def _decode(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode(errors="replace")
    except ValueError:
        raise SlurmUnreachable("The login node gave an unexpected answer.") from None


def _files(text: str) -> dict[str, str]:
    """Return the inode and modification time of each file, keyed by its path below the folder of all jobs."""
    lines = (line.partition(" ") for line in lines_of(text))
    return {path.rpartition("/jobs/")[2]: state for state, _, path in lines}
