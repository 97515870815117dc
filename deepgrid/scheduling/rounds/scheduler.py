"""Rounds of the meta-scheduler: pending jobs x clusters -> assignments, and a reason for each job that waits. Pure.

A round serves the jobs in the order of `fairness`. Each goes to the best cluster, by `score`, of those where it
can start soon. When there is none, it stays pending, and it reserves its start at one cluster (`tables.starts`).
Jobs are held back because providers serve claims in order: a job that waits at a cluster could no longer be
overtaken by a customer with a smaller share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deepgrid.lifecycle.job import Job
from deepgrid.scheduling.market import Assignment, Market, Round, SchedulerSettings, Usage, Waiting
from deepgrid.scheduling.occupancy import free_steps
from deepgrid.scheduling.rounds import reasons
from deepgrid.scheduling.rounds.candidates import Board, Task, too_much
from deepgrid.scheduling.rounds.fairness import FairShare, total
from deepgrid.scheduling.rounds.placement import Placement
from deepgrid.scheduling.rounds.waiting import Line, why_nowhere
from deepgrid.scheduling.tables.starts import StartTable

Refusals = Mapping[int, Mapping[str, str]]


class Scheduler:
    """Decides on pending jobs, round after round. Keeps what did not change between rounds."""

    def __init__(self, settings: SchedulerSettings | None = None) -> None:
        self.settings = settings or SchedulerSettings()
        self._board = Board()
        self._nowhere: dict[int, tuple[Job, Waiting]] = {}  # jobs that no cluster can take, as of the last round

    def round(
        self, jobs: Sequence[Job], market: Market, refusals: Refusals | None = None, usage: Usage | None = None
    ) -> Round:
        """Decide on each pending job.

        Args:
            jobs: The pending jobs, in any order.
            market: The clusters and the time.
            refusals: Per job id, the addresses of providers that gave it back lately, each with the reason. The
                job goes to none of these; so the caller forgets a refusal when it is no longer recent.
            usage: Past and present use of the grid per customer.

        Returns:
            One assignment or one reason to wait per job, and the customers' shares.
        """
        board, settings, usage = self._board, self.settings, usage or Usage()
        changed = board.update(market.clusters)
        fair = FairShare(usage, total(board.states))
        tasks, waiting, left = self._tasks(jobs, market, refusals or {}, usage, changed)
        steps = [free_steps(state, market.now) for state in board.states]
        placement = Placement(board, StartTable(steps, market.now, market.now + settings.assign_ahead_s), settings)
        assignments: list[Assignment] = []
        line = Line(fair)
        eligible = [task.job for task in tasks.values()]
        for job in fair.line(eligible, market.now, settings.age_share_per_day):
            decision = placement.decide(tasks[job.id])
            if isinstance(decision, Assignment):
                assignments.append(decision)
            else:
                waiting.append(line.append(job, decision))
        customers = {job.customer for job in jobs} | set(usage.present)
        return Round(assignments, waiting, {one: fair.share(one).value for one in sorted(customers)}, left)

    def _tasks(
        self, jobs: Sequence[Job], market: Market, refusals: Refusals, usage: Usage, changed: bool
    ) -> tuple[dict[int, Task], list[Waiting], int]:
        """Return the jobs that some cluster can take, those that wait for another reason, and how many were not
        compared.

        A job that no cluster can take is compared again when hardware, labels or prices changed, or the job itself.
        """
        known, self._nowhere = {} if changed else self._nowhere, {}
        tasks: dict[int, Task] = {}
        waiting: list[Waiting] = []
        new: list[Job] = []
        for job in jobs:
            if (until := usage.waits.get(job.customer, 0)) > market.now:
                waiting.append(Waiting(job.id, reasons.cancelled_often(until)))
            elif job.id not in refusals and job.id in known and known[job.id][0] == job:
                self._nowhere[job.id] = known[job.id]
            else:
                new.append(job)
        left = too_much(new, self._board.known)
        for job in new:
            if job.id in left:
                waiting.append(Waiting(job.id, reasons.TOO_MUCH))
                continue
            task = self._board.task(job, refusals.get(job.id, {}))
            if task.count and len(task.refused) < self.settings.max_tries:
                tasks[job.id] = task
                continue
            found = Waiting(job.id, why_nowhere(self._board, task, self.settings.max_tries))
            if task.refused:
                waiting.append(found)
            else:
                self._nowhere[job.id] = job, found
        waiting += [found for _, found in self._nowhere.values()]
        return tasks, waiting, len(left)
