"""Where a claim stands at the cluster, from everything that knows of it: concluded here and nowhere else.

The spool counts before the queue, both before the ended jobs that the controller keeps for minutes, and all of them
before accounting. What none of them knows is absent, unless something speaks against it: records cannot be read,
accounting still has the job as unfinished, or a queue that held it a moment ago is empty as a whole, as that of a
controller that came back without its state. Accounting learns late, and of jobs that the controller forgot never: what
was alive just now, and is not among the ended jobs that the controller keeps, was forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import ABSENT, Phase, SlurmJob
from deepgrid.slurm.observe.commands import REQUEUED, Row, is_known
from deepgrid.slurm.observe.runs import Seen
from deepgrid.slurm.observe.snapshot import Snapshot

EMPTIED_S = 60.0  # for which an empty queue proves nothing about what it held
RUNAWAY_S = 900.0  # for which accounting alone keeps a job from being absent
REMEMBERED_S = 30.0  # for which every controller remembers a job that ended (MinJobAge, by default 300 s)
KEEP_S = 4 * RUNAWAY_S

UNREAD = SlurmJob(Phase.UNKNOWN, reason="the cluster's completion records cannot be read")
SUDDENLY_EMPTY = SlurmJob(Phase.UNKNOWN, reason="the cluster's whole queue is suddenly empty")
ABSENT_BUT_ACCOUNTED = SlurmJob(Phase.UNKNOWN, reason="accounting knows the job as unfinished, the queue does not")
RUNAWAY = SlurmJob(Phase.ABSENT, reason="the cluster lost the job: only its accounting knows it, and no end of it")
FORGOTTEN = SlurmJob(Phase.ABSENT, reason="the cluster lost the job: its controller has forgotten it")
REFUSED_START = SlurmJob(Phase.ABSENT, reason="the cluster lost the job, and a second start was refused")

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Sighting:
    """What earlier looks saw of a claim; times by the monotonic clock, in seconds, but for those of `ran`."""

    touched_at: float
    ran: dict[int, int] = field(default_factory=dict)  # by the cluster's clock, see `Seen`
    alive_at: float | None = None
    unfinished_since: float | None = None
    forgotten: bool = False
    unheard_of: str = ""

    def was_alive(self, now: float, within_s: float) -> bool:
        return self.alive_at is not None and now - self.alive_at < within_s


class Sightings:
    """Conclusions, and the memory that they need. One a cluster; `now` is in monotonic seconds."""

    def __init__(self) -> None:
        self._seen: dict[JobKey, _Sighting] = {}

    def by_look(self, look: Snapshot, keys: Iterable[JobKey], now: float) -> dict[JobKey, SlurmJob]:
        """What spool and queue tell; claims that neither knows are left out."""
        self._seen = {key: seen for key, seen in self._seen.items() if now - seen.touched_at < KEEP_S}
        found: dict[JobKey, SlurmJob] = {}
        for key in keys:
            end, queued = look.ended(key, self._ran(key)), look.queued(key)
            # A job that was queued again has records, and may run once more.
            job = queued if queued is not None and (end is None or end.state == REQUEUED) else end
            if job is None or (job is end and look.is_unclear(key, job)):
                continue
            found[key] = job
            if job.phase is Phase.ENDED:
                continue
            seen = self._sighting(key, now)
            if job.phase is Phase.RUNNING and job.started_at is not None:
                seen.ran[job.started_at] = max(look.clock, job.started_at)
            seen.alive_at, seen.unfinished_since, seen.forgotten = now, None, False
            self._note_state(key, job.state, now)
        return found

    def submitted(self, key: JobKey, now: float) -> None:
        """Slurm has just taken the job: what forgets it from now on had it."""
        self._sighting(key, now).alive_at = now

    def by_records(
        self, look: Snapshot, missing: Iterable[JobKey], remembered: Sequence[Row], accounted: Sequence[Row], now: float
    ) -> dict[JobKey, SlurmJob]:
        """What is concluded about claims that the look missed, by the controller's memory and by accounting."""
        return {key: self._recorded(look, key, remembered, accounted, now) for key in missing}

    def _recorded(
        self, look: Snapshot, key: JobKey, remembered: Sequence[Row], accounted: Sequence[Row], now: float
    ) -> SlurmJob:
        ran = self._ran(key)
        rows, by_memory = (*remembered, *accounted), look.records_of(key, remembered, ran)
        if end := look.records_of(key, rows, ran).end:
            return end
        if not look.whole:
            return UNREAD
        refused = look.refused_start(key, rows, ran)
        if refused and look.barred(key):  # whatever accounting, which is late, may call it
            return replace(REFUSED_START, stopped=True)
        if unfinished := by_memory.unfinished or look.records_of(key, accounted, ran).unfinished:
            self._note_state(key, unfinished[0].state, now)
            return self._unfinished(look, key, now, is_remembered=bool(by_memory.unfinished))
        if refused:
            return REFUSED_START
        seen = self._seen.get(key)
        return SUDDENLY_EMPTY if seen is not None and _emptied(look, seen, now) else ABSENT

    def _unfinished(self, look: Snapshot, key: JobKey, now: float, *, is_remembered: bool) -> SlurmJob:
        seen = self._sighting(key, now)
        seen.forgotten = not is_remembered and (seen.forgotten or seen.was_alive(now, REMEMBERED_S))
        if seen.forgotten:
            return SUDDENLY_EMPTY if _emptied(look, seen, now) else FORGOTTEN
        seen.unfinished_since = now if seen.unfinished_since is None else seen.unfinished_since
        return RUNAWAY if now - seen.unfinished_since >= RUNAWAY_S else ABSENT_BUT_ACCOUNTED

    def _sighting(self, key: JobKey, now: float) -> _Sighting:
        seen = self._seen.setdefault(key, _Sighting(now))
        seen.touched_at = now
        return seen

    def _ran(self, key: JobKey) -> Seen:
        seen = self._seen.get(key)
        return dict(seen.ran) if seen else {}

    def _note_state(self, key: JobKey, state: str, now: float) -> None:
        """Log a state that this code has never heard of, once a claim and state."""
        seen = self._sighting(key, now)
        if not is_known(state) and seen.unheard_of != state:
            seen.unheard_of = state
            log.warning("job %d: Slurm calls its state %s, which says nothing here; it is waited on", key.job_id, state)


def _emptied(look: Snapshot, seen: _Sighting, now: float) -> bool:
    """Whether the whole queue is empty, and held the claim a moment ago."""
    return not look.held and seen.was_alive(now, EMPTIED_S)
