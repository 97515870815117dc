"""Reasons for waiting jobs: the clusters that cannot take them and why, and the place in the line."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from deepgrid.lifecycle.job import Job
from deepgrid.scheduling.fit import Lack, condition_text
from deepgrid.scheduling.market import Waiting
from deepgrid.scheduling.rounds import reasons
from deepgrid.scheduling.rounds.candidates import Board, Task, affordable_wei
from deepgrid.scheduling.rounds.fairness import FairShare, Share


def why_nowhere(board: Board, task: Task, max_tries: int) -> str:
    """Return why no cluster can take a job."""
    if not board.states:
        return "no cluster is approved and open for jobs"
    if len(task.refused) >= max_tries:
        return f"{len(task.refused)} clusters gave it back; it is not tried again"
    return "no cluster can take it: " + reasons.sentence(obstacles(board, task))


def obstacles(board: Board, task: Task) -> list[reasons.Count]:
    """Return the clusters that cannot take a job, grouped by the first reason."""
    suitable = task.suitable
    if suitable.obstacles is None:
        suitable.obstacles = _unsuitable(board, task)
    if task.able is suitable.suits:
        return suitable.obstacles
    within, refusing = board.within(affordable_wei(task.job), suitable), 0
    if task.refused:
        barred = board.refusing(task.refused, suitable)
        within, refusing = within & ~barred, int(np.count_nonzero(barred))
    paid = int(np.count_nonzero(within))
    ceiling = reasons.above_ceiling(paid - task.count, task.job.wishes.max_rate_wei)
    dear = reasons.too_expensive(suitable.count - refusing - paid)
    return [*suitable.obstacles, reasons.refused_count(refusing), dear, ceiling]


def _unsuitable(board: Board, task: Task) -> list[reasons.Count]:
    lacks = board.fits.lacks(task.suitable.shape)
    codes = np.bincount(lacks, minlength=len(Lack)).tolist()
    shape = task.suitable.shape
    counts = [reasons.lacking(shape, Lack(code), many) for code, many in enumerate(codes) if code and many]
    left = lacks == int(Lack.NOTHING)
    for condition in task.asks[1]:
        if not left.any():
            break
        met = board.conditions.met(condition)
        counts.append(reasons.unmet(condition_text(condition), int((left & ~met).sum())))
        left = left & met
    return counts


class Line:
    """Gives each waiting job its place, in the order of the calls."""

    def __init__(self, fair: FairShare) -> None:
        self._fair = fair
        self._own: Counter[str] = Counter()
        self._length = 0
        self._shares: dict[str, Share] = {}

    def append(self, job: Job, held: Waiting) -> Waiting:
        """Return the job as the last in the line so far."""
        share = self._shares.get(job.customer)
        if share is None:
            share = self._shares[job.customer] = self._fair.share(job.customer)
        others = self._length - self._own[job.customer]
        self._own[job.customer] += 1
        self._length += 1
        return replace(held, position=self._length, ahead_of_others=others, share=share.value, resource=share.resource)
