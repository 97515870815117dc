"""Decides the state of a claim at the cluster, from all sources that know it. No other module decides this.

The sources count in this order: the spool, the queue, the ended jobs that the controller keeps for minutes, accounting.
A claim that no source knows is absent, except in these cases:

* The completion records cannot be read.
* Accounting still shows the job as unfinished.
* The whole queue is empty, and held the claim a moment ago: a controller may have come back without its state.

Accounting reports late. It never reports the end of a job that the controller lost. A job counts as forgotten if it was
alive a moment ago and is not among the ended jobs that the controller keeps.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import ABSENT, Phase, SlurmJob
from deepgrid.slurm.commands.job_row import Row
from deepgrid.slurm.commands.job_states import REQUEUED, phase_of
from deepgrid.slurm.commands.versions import wait_status
from deepgrid.slurm.observe.run_records import Seen
from deepgrid.slurm.observe.snapshot import Snapshot

UNREAD = SlurmJob(Phase.UNKNOWN, reason="the cluster's completion records cannot be read")
SUDDENLY_EMPTY = SlurmJob(Phase.UNKNOWN, reason="the cluster's whole queue is suddenly empty")
_ACCOUNTED = "accounting shows an unfinished job, but the queue does not have it"
ABSENT_BUT_ACCOUNTED = SlurmJob(Phase.UNKNOWN, reason=_ACCOUNTED)
CANCELLER_UNKNOWN = SlurmJob(Phase.UNKNOWN, reason="accounting does not say yet who cancelled the job")
RUNAWAY = SlurmJob(Phase.ABSENT, reason="the cluster lost the job: only accounting knows it, without an end")
FORGOTTEN = SlurmJob(Phase.ABSENT, reason="the cluster lost the job: its controller has forgotten it")
REFUSED_START = SlurmJob(Phase.ABSENT, reason="the cluster lost the job, and a second start was refused")

TERMINATED = (wait_status(128 + signal.SIGTERM, 0), wait_status(0, signal.SIGTERM))

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VerdictSettings:
    """For how long evidence counts, in seconds."""

    empty_queue_s: float = 60.0  # an empty queue proves nothing about a job that it held so recently
    runaway_s: float = 900.0  # accounting alone keeps a job from being absent for this long
    canceller_s: float = 60.0  # accounting is asked for this long who cancelled a job
    remembered_s: float = 30.0  # every controller remembers an ended job for this long (MinJobAge, by default 300 s)

    @property
    def history_s(self) -> float:
        """Seconds for which the history of a claim is kept after its last use."""
        return 4 * self.runaway_s


@dataclass(slots=True)
class _History:
    """The history of a claim in earlier snapshots. Times are seconds of the monotonic clock, except in `ran`."""

    used_at: float
    ran: dict[int, int] = field(default_factory=dict)  # by the cluster's clock, see `Seen`
    suspended_s: int = 0
    preempted: bool = False
    alive_at: float | None = None
    unfinished_since: float | None = None
    cancelled_since: float | None = None
    forgotten: bool = False
    unknown_state: str = ""

    def was_alive(self, now: float, within_s: float) -> bool:
        return self.alive_at is not None and now - self.alive_at < within_s


class Verdicts:
    """The verdicts on claims, and the history that they need. Use one per cluster. `now` is in monotonic seconds."""

    def __init__(self, settings: VerdictSettings = VerdictSettings()) -> None:
        self._settings = settings
        self._histories: dict[JobKey, _History] = {}
        self.has_accounting = True

    def from_snapshot(self, snapshot: Snapshot, keys: Iterable[JobKey], now: float) -> dict[JobKey, SlurmJob]:
        """Return the verdicts by spool and queue. Claims that neither knows are omitted."""
        kept_s = self._settings.history_s
        self._histories = {key: known for key, known in self._histories.items() if now - known.used_at < kept_s}
        found: dict[JobKey, SlurmJob] = {}
        for key in keys:
            end, queued = snapshot.ended(key, self._ran(key)), snapshot.queued(key)
            # A requeued job has records, and may run once more.
            job = queued if queued is not None and (end is None or end.state == REQUEUED) else end
            if job is None or (job is end and (snapshot.is_unclear(key, job) or self._may_be_preempted(key, job))):
                continue
            job = self._site_counted(key, job) if job is end else job
            found[key] = job
            if job.phase is Phase.ENDED:
                continue
            history = self._history(key, now)
            if job.phase is Phase.RUNNING and job.started_at is not None:
                history.ran[job.started_at] = max(snapshot.clock, job.started_at)
                history.suspended_s = max(history.suspended_s, snapshot.suspended_s(key))
            history.preempted = history.preempted or snapshot.is_preempted(key)
            history.alive_at, history.unfinished_since, history.forgotten = now, None, False
            self._log_unknown_state(key, job.state, now)
        return found

    def submitted(self, key: JobKey, now: float) -> None:
        """Slurm has just accepted the job, so it counts as alive."""
        self._history(key, now).alive_at = now

    def from_records(
        self,
        snapshot: Snapshot,
        missing: Iterable[JobKey],
        remembered: Sequence[Row],
        accounted: Sequence[Row],
        now: float,
    ) -> dict[JobKey, SlurmJob]:
        """Return the verdicts on claims that the snapshot misses, by the controller's memory and by accounting."""
        return {key: self._recorded(snapshot, key, remembered, accounted, now) for key in missing}

    def _recorded(
        self, snapshot: Snapshot, key: JobKey, remembered: Sequence[Row], accounted: Sequence[Row], now: float
    ) -> SlurmJob:
        ran = self._ran(key)
        rows, by_memory = (*remembered, *accounted), snapshot.records_of(key, remembered, ran)
        if snapshot.is_preempted(key, remembered):
            self._history(key, now).preempted = True
        if end := snapshot.records_of(key, rows, ran).end:
            waits = snapshot.lacks_canceller(key, end) and self._waits_for_canceller(key, now)
            return CANCELLER_UNKNOWN if waits else self._site_counted(key, end)
        if not snapshot.whole:
            return UNREAD
        refused = snapshot.refused_start(key, rows, ran)
        if refused and snapshot.barred(key):  # accounting is late, so its state does not count
            return replace(REFUSED_START, stopped=True)
        if unfinished := by_memory.unfinished or snapshot.records_of(key, accounted, ran).unfinished:
            self._log_unknown_state(key, unfinished[0].state, now)
            return self._unfinished(snapshot, key, now, is_remembered=bool(by_memory.unfinished))
        if refused:
            return REFUSED_START
        history = self._histories.get(key)
        return SUDDENLY_EMPTY if history is not None and self._was_emptied(snapshot, history, now) else ABSENT

    def _site_counted(self, key: JobKey, end: SlurmJob) -> SlurmJob:
        """Return the end with what the site did to the job, as the supervisor saw it: suspension, and preemption.

        With a grace time, Slurm 22.05 sends TERM to a preempted job and calls its end FAILED.
        """
        history = self._histories.get(key)
        if history is None:
            return end
        state = "PREEMPTED" if history.preempted and end.state == "FAILED" else end.state
        return replace(end, state=state, suspended_s=max(history.suspended_s, end.suspended_s))

    def _may_be_preempted(self, key: JobKey, end: SlurmJob) -> bool:
        """Return whether TERM ended the job, so that the controller's memory may show that Slurm preempted it."""
        history = self._histories.get(key)
        return end.state == "FAILED" and end.exit_status in TERMINATED and not (history and history.preempted)

    def _waits_for_canceller(self, key: JobKey, now: float) -> bool:
        """Return whether accounting may still report who cancelled the job."""
        history = self._history(key, now)
        history.cancelled_since = now if history.cancelled_since is None else history.cancelled_since
        return self.has_accounting and now - history.cancelled_since < self._settings.canceller_s

    def _unfinished(self, snapshot: Snapshot, key: JobKey, now: float, *, is_remembered: bool) -> SlurmJob:
        history, settings = self._history(key, now), self._settings
        was_alive = history.was_alive(now, settings.remembered_s)
        history.forgotten = not is_remembered and (history.forgotten or was_alive)
        if history.forgotten:
            return SUDDENLY_EMPTY if self._was_emptied(snapshot, history, now) else FORGOTTEN
        history.unfinished_since = now if history.unfinished_since is None else history.unfinished_since
        return RUNAWAY if now - history.unfinished_since >= settings.runaway_s else ABSENT_BUT_ACCOUNTED

    def _was_emptied(self, snapshot: Snapshot, history: _History, now: float) -> bool:
        """Return whether the whole queue is empty, and held the claim a moment ago."""
        return not snapshot.held and history.was_alive(now, self._settings.empty_queue_s)

    def _history(self, key: JobKey, now: float) -> _History:
        history = self._histories.setdefault(key, _History(now))
        history.used_at = now
        return history

    def _ran(self, key: JobKey) -> Seen:
        history = self._histories.get(key)
        return dict(history.ran) if history else {}

    def _log_unknown_state(self, key: JobKey, state: str, now: float) -> None:
        """Log a state that this code does not know, once per claim and state."""
        history = self._history(key, now)
        if phase_of(state) is Phase.UNKNOWN and history.unknown_state != state:
            history.unknown_state = state
            log.warning("job %d: unknown Slurm state %s, waiting for the next one", key.job_id, state)
