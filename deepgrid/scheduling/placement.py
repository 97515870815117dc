"""Places one job after the other during a round, and fills the clusters with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepgrid.billing.credits import format_credits
from deepgrid.billing.formulas import MAX_LIMIT_MINUTES
from deepgrid.lifecycle.job import Job, Prefer
from deepgrid.scheduling import reasons, score
from deepgrid.scheduling.candidates import Board, Suitable, Task
from deepgrid.scheduling.market import Assignment, SchedulerSettings
from deepgrid.scheduling.tables.starts import StartTable
from deepgrid.scheduling.waiting import obstacles

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.intp]


NONE: Indexes = np.array([], np.intp)
SHORT_S = 600.0
UNKNOWN_S = 10 * 365 * 86_400.0
"""An estimated start further away is not shown."""


@dataclass(frozen=True, slots=True)
class Held:
    """A job that stays pending: the reason, and where and when it should start (unix time, 0 for unknown)."""

    reason: str
    cluster: str
    estimated_start: int


class Placement:
    """The decisions of one round, in the order of the calls."""

    def __init__(self, board: Board, starts: StartTable, settings: SchedulerSettings) -> None:
        self._board, self._starts, self._settings = board, starts, settings
        self._weights = {prefer: score.preferring(settings.weights, prefer) for prefer in Prefer}
        self._backlog_s = np.zeros(len(board.states))  # work of the jobs that wait for each cluster

    def decide(self, task: Task) -> Assignment | Held:
        """Assign the job, or hold it back."""
        suitable = task.suitable
        soon = self._soon(task)
        if not len(soon):
            return self._hold(task, 0)
        allowed = self._unreserved(task, soon) if self._starts.reservations else soon
        if not len(allowed):
            return self._hold(task, len(soon))
        if task.job.wishes.prefer is Prefer.PRICE and len(allowed) < task.clusters_left:
            among = self._among(task)
            best = self._best(task, among, self._queue_waits(suitable, among))
            if best not in allowed:
                return self._hold(task, 0)
        else:
            best = self._best(task, allowed, self._soon_waits(suitable, allowed))
        return self._assign(task, best, len(allowed))

    def _among(self, task: Task) -> Indexes:
        """Positions in `suitable` of the clusters that can take the job."""
        if task.affordable is None:
            return np.arange(len(task.suitable.clusters))
        return np.flatnonzero(task.affordable)

    def _soon(self, task: Task) -> Indexes:
        """Those where it can start soon. A round only fills clusters, so what is full stays full."""
        suitable = task.suitable
        if suitable.full:
            return NONE
        soon = self._starts.soon_enough(suitable.needs, suitable.clusters)
        if task.affordable is not None:
            soon &= task.affordable
        found = soon.nonzero()[0]
        suitable.full = task.affordable is None and not len(found)
        return found

    def _unreserved(self, task: Task, soon: Indexes) -> Indexes:
        """Those of `soon` where the job does not delay a job that reserved its start."""
        suitable, clusters = task.suitable, task.suitable.clusters[soon]
        rates = np.maximum(suitable.rates[soon], 1e-300)
        seconds = 60.0 * np.clip(float(task.job.locked_wei) / rates, 1.0, MAX_LIMIT_MINUTES)
        ends = self._starts.ready[clusters] + seconds
        return soon[self._starts.leaves_reserved(suitable.needs, clusters, ends)]

    def _best(self, task: Task, among: Indexes, waits_s: Floats) -> int:
        """The position in `suitable`, of those in `among`, with the best score."""
        suitable, prefer = task.suitable, task.job.wishes.prefer
        clusters = suitable.clusters[among]
        room = score.Room(waits_s, self._starts.load[clusters], self._settings.start_scale_s)
        costs = self._fixed(suitable, prefer)[among] + score.moving(room, self._weights[prefer])
        return int(among[self._board.best(task.job.id, suitable.shape, clusters, costs)])

    def _fixed(self, suitable: Suitable, prefer: Prefer) -> Floats:
        found = suitable.fixed.get(prefer)
        if found is None:
            reliabilities = self._board.reliabilities[suitable.clusters]
            terms = score.Terms(suitable.rates, suitable.speeds, reliabilities)
            found = suitable.fixed[prefer] = score.fixed(terms, self._weights[prefer])
        return found

    def _soon_waits(self, suitable: Suitable, soon: Indexes) -> Floats:
        """Seconds to the start where it is soon. Within a short horizon, the next start of any job is close enough."""
        clusters, starts = suitable.clusters[soon], self._starts
        if self._settings.assign_ahead_s <= SHORT_S or not self._settings.weights.start:
            return starts.ready[clusters] - starts.now
        return starts.starts(suitable.needs, clusters) - starts.now

    def _queue_waits(self, suitable: Suitable, among: Indexes) -> Floats:
        """Seconds to the start behind the jobs that wait before it. Computed once per round: these are estimates."""
        if suitable.starts is None:
            suitable.starts = self._starts.starts(suitable.needs, suitable.clusters)
        return suitable.starts[among] - self._starts.now + self._backlog_s[suitable.clusters[among]]

    def _assign(self, task: Task, best: int, choices: int) -> Assignment:
        suitable, starts = task.suitable, self._starts
        cluster = int(suitable.clusters[best])
        start = starts.start(suitable.needs, cluster)
        starts.place(cluster, suitable.needs, start, _seconds(task.job, float(suitable.rates[best])))
        provider = self._board.states[cluster].provider
        rate = format_credits(self._board.rate_wei(suitable.shape, cluster))
        reason = f"{provider.name} fits at {rate} credits per minute, {reasons.chosen(choices, task.job.wishes.prefer)}"
        return Assignment(task.job.id, provider.address, reason, int(start))

    def _hold(self, task: Task, kept: int) -> Held:
        """Keep the job pending. The first job that waits for a cluster reserves its start there."""
        suitable, starts = task.suitable, self._starts
        among = self._among(task)
        waits_s = self._queue_waits(suitable, among)
        best = self._best(task, among, waits_s)
        cluster = int(suitable.clusters[best])
        if not starts.is_reserved(cluster):
            starts.reserve(cluster, suitable.needs, starts.start(suitable.needs, cluster))
        wait_s = float(waits_s[among.searchsorted(best)])
        part = max(
            needs / all_ for needs, all_ in zip(suitable.needs.tolist(), starts.total[cluster], strict=True) if all_
        )
        self._backlog_s[cluster] += part * _seconds(task.job, float(suitable.rates[best]))
        estimate = int(starts.now + wait_s) if wait_s < UNKNOWN_S else 0
        return Held(self._why(task, kept), self._board.states[cluster].provider.name, estimate)

    def _why(self, task: Task, kept: int) -> str:
        left = task.clusters_left
        return reasons.sentence([*obstacles(self._board, task), reasons.kept(kept), reasons.full(left - kept)])


def _seconds(job: Job, rate: float) -> float:
    """The time that the job's credits buy at this rate (wei per minute)."""
    minutes = float(MAX_LIMIT_MINUTES) if rate * MAX_LIMIT_MINUTES <= job.locked_wei else job.locked_wei / rate
    return 60.0 * max(1.0, minutes)
