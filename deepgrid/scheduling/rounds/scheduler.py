"""Rounds of the meta-scheduler: pending jobs x clusters -> assignments, and a reason for each job that waits. Pure.

A round serves the jobs in the order of `fairness`. Each goes to the best cluster, by `score`, of those where it
can start soon. When there is none, it stays pending, and it reserves its start at one cluster (`tables.starts`).
Jobs are held back because providers serve claims in order: a job that waits at a cluster could no longer be
overtaken by a customer with a smaller share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deepgrid.lifecycle.job import Job
from deepgrid.scheduling.explain import explain
from deepgrid.scheduling.market import Assignment, Market, Round, Row, SchedulerSettings, Usage, Waiting
from deepgrid.scheduling.occupancy import free_steps
from deepgrid.scheduling.rounds import reasons
from deepgrid.scheduling.rounds.candidates import Board, Task
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
        board, settings = self._board, self.settings
        board.update(market.clusters)
        usage = usage or Usage()
        fair = FairShare(usage, total(board.states))
        tasks: dict[int, Task] = {}
        waiting: list[Waiting] = []
        for job in jobs:
            if (until := usage.waits.get(job.customer, 0)) > market.now:
                waiting.append(Waiting(job.id, reasons.cancelled_often(until)))
                continue
            task = board.task(job, (refusals or {}).get(job.id, {}))
            if task.count and len(task.refused) < settings.max_tries:
                tasks[job.id] = task
            else:
                waiting.append(Waiting(job.id, why_nowhere(board, task, settings.max_tries)))
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
                waiting.append(line.append(job, decision.reason, decision.cluster, decision.estimated_start))
        customers = {job.customer for job in jobs} | set(usage.present)
        return Round(assignments, waiting, {one: fair.share(one).value for one in sorted(customers)})

    def explain(self, job: Job, market: Market, refusals: Mapping[str, str] | None = None) -> list[Row]:
        """One row per cluster: whether it can take the job or why not, price, minutes, estimated start."""
        return explain(job, market, refusals)
