"""The discrete-event simulator: submissions, rounds of the policy, ends of jobs."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from deepgrid.billing.formulas import affordable_minutes, bill, rate_wei_per_minute
from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.scheduling.market import Assignment, ClusterState, HotJob, Market, Resources
from tools.simulation.cluster import Queued, SimulatedCluster
from tools.simulation.policies import Policy
from tools.simulation.testbed import START, Site, chain_job
from tools.simulation.workloads import TraceJob

ROUND_S = 10
"""Least time between two rounds. A round follows each change: a submission or an end."""


KINDS = ("serial", "parallel", "gpu")
"""Kinds of jobs, as `scheduling.speed` names them."""


class Event(IntEnum):
    """The kinds of events, in their order within the same second."""

    END = 0
    SUBMISSION = 1
    ROUND = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a job. Times are seconds since the simulation's start; `estimated_s` is -1 if not given."""

    job: TraceJob
    site: int
    assigned_s: int
    started_s: int
    ended_s: int
    estimated_s: int
    cost_wei: int

    @property
    def wait_s(self) -> int:
        return self.started_s - self.job.submitted_s

    @property
    def run_s(self) -> int:
        return self.ended_s - self.started_s


class Simulator:
    """One run of a workload under a policy."""

    def __init__(self, jobs: Sequence[TraceJob], sites: Sequence[Site], policy: Policy) -> None:
        self.sites, self.policy = sites, policy
        self.providers = [site.provider(number) for number, site in enumerate(sites, 1)]
        self.clusters = [SimulatedCluster(provider) for provider in self.providers]
        self.outcomes: list[Outcome] = []
        self.misfits: list[TraceJob] = []
        self._site_of = {provider.address: index for index, provider in enumerate(self.providers)}
        self._jobs = {job.number: job for job in jobs}
        self._pending: dict[int, Job] = {}
        self._assigned: dict[int, tuple[Job, Assignment, int]] = {}  # with the time of the assignment
        self._events: list[tuple[int, Event, int]] = []
        self._round_at, self._last_round = -ROUND_S, -ROUND_S
        self._speed = [dict.fromkeys(KINDS, site.speed) for site in sites]

    def run(self) -> list[Outcome]:
        """Simulate until all jobs that fit a cluster have ended. Jobs that fit none are in `misfits`."""
        for job in self._jobs.values():
            heapq.heappush(self._events, (job.submitted_s, Event.SUBMISSION, job.number))
        for _ in self.steps():
            pass
        if self._pending or self._assigned:
            raise RuntimeError(f"The policy {self.policy.name} left {len(self._pending)} jobs pending.")
        return self.outcomes

    def steps(self) -> Iterator[int]:
        """Process the events. Yields the time after each."""
        while self._events:
            now, event, number = heapq.heappop(self._events)
            if event is Event.SUBMISSION:
                self._submit(self._jobs[number], now)
            elif event is Event.END:
                self._end(number, now)
            elif now == self._round_at > self._last_round:
                self._round(now)
            yield now

    def _submit(self, job: TraceJob, now: int) -> None:
        pending = chain_job(job, self.providers)
        if pending is None:
            self.misfits.append(job)
            return
        self._pending[job.number] = pending
        self._want_round(now)

    def _end(self, number: int, now: int) -> None:
        job, assignment, assigned_s = self._assigned.pop(number)
        site = self._site_of[assignment.provider]
        cluster = self.clusters[site]
        started_s = cluster.running[number].started_at
        cluster.end(number)
        estimated_s = assignment.estimated_start - START if assignment.estimated_start else -1
        cost = self._cost(job, site, now - started_s)
        trace_job = self._jobs[number]
        self.outcomes.append(Outcome(trace_job, site, assigned_s, started_s, now, estimated_s, cost))
        self._start_jobs(site, now)
        if self._pending:
            self._want_round(now)

    def _cost(self, job: Job, site: int, run_s: int) -> int:
        rate = rate_wei_per_minute(job.definition, self.providers[site].prices)
        return bill(-(-run_s // 60), rate, job.locked_wei, 0).cost

    def _want_round(self, at: int) -> None:
        """Plan a round at `at` or as soon after it as allowed, unless an earlier one is planned."""
        at = max(at, self._last_round + ROUND_S)
        if self._round_at <= self._last_round or at < self._round_at:
            self._round_at = at
            heapq.heappush(self._events, (at, Event.ROUND, 0))

    def _round(self, now: int) -> None:
        self._last_round = now
        if not self._pending:
            return
        decision = self.policy.decide(list(self._pending.values()), self.market(now))
        touched = set()
        for assignment in decision.assignments:
            job = self._pending.pop(assignment.job_id)
            site = self._site_of[assignment.provider]
            rate = rate_wei_per_minute(job.definition, self.providers[site].prices)
            limit_s = 60 * affordable_minutes(job.locked_wei, rate)
            self.clusters[site].submit(Queued(job.id, job.definition, limit_s))
            self._assigned[job.id] = (job, assignment, now)
            touched.add(site)
        for site in sorted(touched):
            self._start_jobs(site, now)
        if self._pending and decision.wake_at:
            self._want_round(decision.wake_at - START)

    def _start_jobs(self, site: int, now: int) -> None:
        for running in self.clusters[site].start_jobs(now):
            run_s = max(1, round(self._jobs[running.queued.job_id].run_s / self.sites[site].speed))
            end = now + min(run_s, running.queued.limit_s)
            heapq.heappush(self._events, (end, Event.END, running.queued.job_id))

    def market(self, now: int) -> Market:
        """Return the market for a policy: the clusters with their hot jobs, and their measured speeds."""
        states = [
            ClusterState(cluster.provider, _hot_jobs(cluster, now), speed=speed)
            for cluster, speed in zip(self.clusters, self._speed, strict=True)
        ]
        return Market(states, START + now)


def _hot_jobs(cluster: SimulatedCluster, now: int) -> list[HotJob]:
    running = [_hot(job.queued, JobStatus.RUNNING, job.limit_at - now) for job in cluster.running.values()]
    return running + [_queued_job(job) for job in cluster.queue]


@lru_cache(maxsize=100_000)
def _queued_job(job: Queued) -> HotJob:
    return _hot(job, JobStatus.SCHEDULED, job.limit_s)


def _hot(job: Queued, status: JobStatus, left_s: int) -> HotJob:
    return HotJob(job.job_id, Resources.of(job.need), -(-left_s // 60), status)
