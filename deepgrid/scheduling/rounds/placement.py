"""Places one job after the other during a round, and fills the clusters with them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deepgrid.billing.credits import format_credits
from deepgrid.billing.formulas import MAX_LIMIT_MINUTES
from deepgrid.lifecycle.job import Job, Prefer
from deepgrid.scheduling.market import Assignment, SchedulerSettings, Waiting
from deepgrid.scheduling.rounds import reasons, score
from deepgrid.scheduling.rounds.candidates import Board, Suitable, Task
from deepgrid.scheduling.rounds.waiting import obstacles
from deepgrid.scheduling.tables.starts import StartTable

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

SHORT_S = 600.0
UNKNOWN_S = 10 * 365 * 86_400.0  # an estimated start further away is not shown


class Placement:
    """The decisions of one round, in the order of the calls."""

    def __init__(self, board: Board, starts: StartTable, settings: SchedulerSettings) -> None:
        self._board, self._starts, self._settings = board, starts, settings
        self._weights = {prefer: score.preferring(settings.weights, prefer) for prefer in Prefer}
        self._backlog_s = np.zeros(len(board.states))  # work of the jobs that wait for each cluster

    def decide(self, task: Task) -> Assignment | Waiting:
        """Assign the job, or hold it back."""
        soon, count = self._soon(task)
        if count and self._starts.reservations:
            soon &= self._not_delaying(task)
            left = int(np.count_nonzero(soon))
            if not left:
                return self._hold(task, kept=count)
            count = left
        if not count:
            return self._hold(task, kept=0)
        if task.job.wishes.prefer is Prefer.PRICE and count < task.count:
            best = self._best(task, task.able, self._queue_waits(task.suitable))
            if not soon[best]:
                return self._hold(task, kept=0)
        else:
            best = self._best(task, soon, self._soon_waits(task.suitable))
        return self._assign(task, best, count)

    def _soon(self, task: Task) -> tuple[Mask, int]:
        """Return where the job can start soon, and the number of these clusters."""
        suitable = task.suitable
        if suitable.full:
            return suitable.suits, 0
        soon = self._starts.soon_enough(suitable.needs)
        soon &= task.able
        count = int(np.count_nonzero(soon))
        suitable.full = not count and task.able is suitable.suits
        return soon, count

    def _not_delaying(self, task: Task) -> Mask:
        """Return where the job delays no job with a reserved start."""
        rates = np.maximum(task.suitable.rates, 1e-300)
        seconds = 60.0 * np.clip(float(task.job.locked_wei) / rates, 1.0, MAX_LIMIT_MINUTES)
        return self._starts.leaves_reserved(task.suitable.needs, self._starts.ready + seconds)

    def _best(self, task: Task, among: Mask, waits_s: Floats) -> int:
        """Return the cluster with the best score of those in `among`."""
        suitable, prefer = task.suitable, task.job.wishes.prefer
        room = score.Room(waits_s, self._starts.load, self._settings.start_scale_s)
        costs = score.moving(room, self._weights[prefer])
        costs += self._fixed(suitable, prefer)
        return self._board.best(task.job.id, suitable, np.where(among, costs, np.inf))

    def _fixed(self, suitable: Suitable, prefer: Prefer) -> Floats:
        """Return the part of the score that does not change during the round; 0 where the cluster does not suit."""
        found = suitable.fixed.get(prefer)
        if found is None:
            suits = suitable.suits
            terms = score.Terms(suitable.rates[suits], suitable.speeds[suits], self._board.reliabilities[suits])
            found = suitable.fixed[prefer] = np.zeros(len(suits))
            found[suits] = score.fixed_score(terms, self._weights[prefer])
        return found

    def _soon_waits(self, suitable: Suitable) -> Floats:
        """Return the seconds to the start where it is soon.

        Within a short horizon, the next start of any job is close enough.
        """
        starts = self._starts
        if self._settings.assign_ahead_s <= SHORT_S or not self._settings.weights.start:
            return starts.ready - starts.now
        return starts.starts(suitable.needs, suitable.suits) - starts.now

    def _queue_waits(self, suitable: Suitable) -> Floats:
        """Return the seconds to the start behind the jobs that wait before it.

        Computed once per round: these are estimates.
        """
        if suitable.starts is None:
            suitable.starts = self._starts.starts(suitable.needs, suitable.suits)
        return suitable.starts - self._starts.now + self._backlog_s

    def _assign(self, task: Task, cluster: int, choices: int) -> Assignment:
        suitable, starts = task.suitable, self._starts
        start = starts.start(suitable.needs, cluster)
        starts.place(cluster, suitable.needs, start, _seconds(task.job, float(suitable.rates[cluster])))
        provider = self._board.states[cluster].provider
        rate = format_credits(self._board.prices.exact(suitable.shape, cluster))
        why = reasons.choice_reason(choices, task.job.wishes.prefer)
        reason = f"{provider.name} fits at {rate} credits per minute, {why}"
        return Assignment(task.job.id, provider.address, reason, int(start))

    def _hold(self, task: Task, kept: int) -> Waiting:
        """Keep the job pending. The first job that waits for a cluster reserves its start there."""
        suitable, starts = task.suitable, self._starts
        waits_s = self._queue_waits(suitable)
        cluster = self._best(task, task.able, waits_s)
        has_reservation = not starts.is_reserved(cluster)
        if has_reservation:
            starts.reserve(cluster, suitable.needs, starts.start(suitable.needs, cluster))
        wait_s = float(waits_s[cluster])
        wanted = zip(suitable.needs.tolist(), starts.total[cluster], strict=True)
        part = max(needs / all_ for needs, all_ in wanted if all_)
        self._backlog_s[cluster] += part * _seconds(task.job, float(suitable.rates[cluster]))
        estimate = int(starts.now + wait_s) if wait_s < UNKNOWN_S else 0
        return Waiting(
            task.job.id,
            self._why(task, kept),
            estimated_start=estimate,
            cluster=self._board.states[cluster].provider.name,
            has_reservation=has_reservation,
        )

    def _why(self, task: Task, kept: int) -> str:
        full = reasons.full(task.count - kept)
        return reasons.sentence([*obstacles(self._board, task), reasons.kept_count(kept), full])


def _seconds(job: Job, rate: float) -> float:
    """Return the time that the job's credits buy at this rate (wei per minute)."""
    minutes = float(MAX_LIMIT_MINUTES) if rate * MAX_LIMIT_MINUTES <= job.locked_wei else job.locked_wei / rate
    return 60.0 * max(1.0, minutes)
