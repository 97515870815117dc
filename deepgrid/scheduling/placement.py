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
Positions = Indexes | slice
"""Some of the clusters of a `Suitable`, by their positions there. All of them are a slice, which copies nothing."""

EVERY = slice(None)
SHORT_S = 600.0
UNKNOWN_S = 10 * 365 * 86_400.0  # an estimated start further away is not shown


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
        soon, count = self._soon(task)
        if not count:
            return self._hold(task, 0)
        allowed = soon
        if self._starts.reservations:
            allowed, left = self._unreserved(task, soon)
            if not left:
                return self._hold(task, count)
            count = left
        if task.job.wishes.prefer is Prefer.PRICE and count < task.clusters_left:
            among = _among(task)
            best = self._best(task, among, self._queue_waits(suitable, among))
            if best not in np.arange(len(suitable.clusters))[allowed]:
                return self._hold(task, 0)
        else:
            best = self._best(task, allowed, self._soon_waits(suitable, allowed))
        return self._assign(task, best, count)

    def _soon(self, task: Task) -> tuple[Positions, int]:
        """Where the job can start soon, and how many. A round only fills clusters, so what is full stays full."""
        suitable = task.suitable
        if suitable.full:
            return EVERY, 0
        soon = self._starts.soon_enough(suitable.needs, suitable.at)
        if task.affordable is not None:
            soon &= task.affordable
        count = int(np.count_nonzero(soon))
        suitable.full = task.affordable is None and not count
        return EVERY if count == len(soon) else soon.nonzero()[0], count

    def _unreserved(self, task: Task, soon: Positions) -> tuple[Indexes, int]:
        """Those of `soon` where the job does not delay a job that reserved its start, and how many."""
        suitable = task.suitable
        clusters, rates = suitable.clusters[soon], np.maximum(suitable.rates[soon], 1e-300)
        seconds = 60.0 * np.clip(float(task.job.locked_wei) / rates, 1.0, MAX_LIMIT_MINUTES)
        free = self._starts.leaves_reserved(suitable.needs, clusters, self._starts.ready[clusters] + seconds)
        positions = free.nonzero()[0]
        return positions if isinstance(soon, slice) else soon[positions], len(positions)

    def _best(self, task: Task, among: Positions, waits_s: Floats) -> int:
        """The position in `suitable`, of those in `among`, with the best score."""
        suitable, prefer = task.suitable, task.job.wishes.prefer
        room = score.Room(waits_s, self._starts.load[suitable.at][among], self._settings.start_scale_s)
        costs = score.moving(room, self._weights[prefer])
        costs += self._fixed(suitable, prefer)[among]
        best = self._board.best(task.job.id, suitable, among, costs)
        return best if isinstance(among, slice) else int(among[best])

    def _fixed(self, suitable: Suitable, prefer: Prefer) -> Floats:
        found = suitable.fixed.get(prefer)
        if found is None:
            reliabilities = self._board.reliabilities[suitable.clusters]
            terms = score.Terms(suitable.rates, suitable.speeds, reliabilities)
            found = suitable.fixed[prefer] = score.fixed(terms, self._weights[prefer])
        return found

    def _soon_waits(self, suitable: Suitable, soon: Positions) -> Floats:
        """Seconds to the start where it is soon. Within a short horizon, the next start of any job is close enough."""
        starts = self._starts
        if self._settings.assign_ahead_s <= SHORT_S or not self._settings.weights.start:
            return starts.ready[suitable.at][soon] - starts.now
        return starts.starts(suitable.needs, suitable.clusters[soon]) - starts.now

    def _queue_waits(self, suitable: Suitable, among: Positions) -> Floats:
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
        among = _among(task)
        waits_s = self._queue_waits(suitable, among)
        best = self._best(task, among, waits_s)
        cluster = int(suitable.clusters[best])
        if not starts.is_reserved(cluster):
            starts.reserve(cluster, suitable.needs, starts.start(suitable.needs, cluster))
        wait_s = float(waits_s[best if isinstance(among, slice) else among.searchsorted(best)])
        part = max(
            needs / all_ for needs, all_ in zip(suitable.needs.tolist(), starts.total[cluster], strict=True) if all_
        )
        self._backlog_s[cluster] += part * _seconds(task.job, float(suitable.rates[best]))
        estimate = int(starts.now + wait_s) if wait_s < UNKNOWN_S else 0
        return Held(self._why(task, kept), self._board.states[cluster].provider.name, estimate)

    def _why(self, task: Task, kept: int) -> str:
        left = task.clusters_left
        return reasons.sentence([*obstacles(self._board, task), reasons.kept(kept), reasons.full(left - kept)])


def _among(task: Task) -> Positions:
    """The clusters that can take the job."""
    return EVERY if task.affordable is None else np.flatnonzero(task.affordable)


def _seconds(job: Job, rate: float) -> float:
    """The time that the job's credits buy at this rate (wei per minute)."""
    minutes = float(MAX_LIMIT_MINUTES) if rate * MAX_LIMIT_MINUTES <= job.locked_wei else job.locked_wei / rate
    return 60.0 * max(1.0, minutes)
