"""Policies under comparison. Each decides on the pending jobs of a round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from deepgrid.billing.formulas import affordable_minutes, rate_wei_per_minute
from deepgrid.lifecycle.job import Job, JobDefinition, Provider
from deepgrid.scheduling.fit import misfit
from deepgrid.scheduling.market import Assignment, Market, Resources, Round, SchedulerSettings
from deepgrid.scheduling.occupancy import capacity, free_steps
from deepgrid.scheduling.past_use import Account, Hold, usage_at
from deepgrid.scheduling.rounds.scheduler import Scheduler

OLDEST, MORE = 5, 25
"""A simulated round of `Deepgrid` considers this number of jobs per customer, to bound its cost: the oldest, and
more of those for which some cluster has enough free."""
Offer = tuple[int, int]
"""Rate in wei per minute, and the index of the provider."""
RETRY_S = 600
"""A round follows after this time where no waiting job has an estimated start."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Assignments, and the unix time of the next round if nothing changes before (0: none)."""

    assignments: list[Assignment] = field(default_factory=list)
    wake_at: int = 0


class Policy(Protocol):
    """Decides on pending jobs. Jobs without an assignment stay pending until the next round."""

    name: str

    def decide(self, jobs: Sequence[Job], market: Market) -> Decision:
        """Decide on `jobs`, which are in the order of submission."""


class FirstCome(ABC):
    """Assigns each job at once, in the order of submission, to a cluster that fits."""

    name: str

    def __init__(self) -> None:
        self._offers: dict[JobDefinition, list[Offer]] = {}

    def decide(self, jobs: Sequence[Job], market: Market) -> Decision:
        providers = [cluster.provider for cluster in market.clusters]
        self.begin(market)
        return Decision([
            Assignment(job.id, providers[self.choose(job, self._fitting(job, providers))].address, self.name)
            for job in jobs
        ])  # fmt: skip

    def begin(self, market: Market) -> None:  # noqa: B027
        """Look at the market before the first job of a round."""

    @abstractmethod
    def choose(self, job: Job, offers: Sequence[Offer]) -> int:
        """Return the index of the provider that gets the job, of these offers."""

    def _fitting(self, job: Job, providers: Sequence[Provider]) -> list[Offer]:
        """Return the offers of all providers that fit, cheapest first. Each definition is looked up once."""
        one = job.definition
        if one not in self._offers:
            self._offers[one] = sorted(
                (rate_wei_per_minute(one, provider.prices), index)
                for index, provider in enumerate(providers)
                if not misfit(one, provider.hardware)
            )
        return self._offers[one]


class FirstComeCheapest(FirstCome):
    """Each job goes at once to the cheapest cluster that fits. The first version of deepgrid did this."""

    name = "cheapest"

    def choose(self, job: Job, offers: Sequence[Offer]) -> int:
        return offers[0][1]


class RandomChoice(FirstCome):
    """Each job goes at once to a random cluster that fits."""

    name = "random"

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = Random(f"choice {seed}")

    def choose(self, job: Job, offers: Sequence[Offer]) -> int:
        return self._random.choice(offers)[1]


class FirstComeLeastBacklog(FirstCome):
    """Each job goes at once to the cheapest cluster with free CPUs, or to the cluster with the least queued work per
    CPU.

    A stronger reference than `FirstComeCheapest`, which queues at the cheapest cluster while others are idle.
    """

    name = "least backlog"

    def begin(self, market: Market) -> None:
        busy = [[(hot.needs.cpus, hot.remaining_minutes) for hot in cluster.busy] for cluster in market.clusters]
        self._cpus = [capacity(cluster.provider.hardware).cpus for cluster in market.clusters]
        self._backlog = [sum(cpus * minutes for cpus, minutes in hot) for hot in busy]
        self._free = [total - sum(cpus for cpus, _ in hot) for total, hot in zip(self._cpus, busy, strict=True)]

    def choose(self, job: Job, offers: Sequence[Offer]) -> int:
        wanted = job.definition.ntasks * job.definition.cpus_per_task
        rate, index = next(
            (offer for offer in offers if self._free[offer[1]] >= wanted),
            min(offers, key=lambda offer: (self._backlog[offer[1]] / self._cpus[offer[1]], offer)),
        )
        self._free[index] -= wanted
        self._backlog[index] += wanted * affordable_minutes(job.locked_wei, rate)
        return index


class Deepgrid:
    """The meta-scheduler of this version: score, fair shares, jobs held back until they can start soon."""

    name = "deepgrid"

    def __init__(self, settings: SchedulerSettings | None = None) -> None:
        self.settings = settings or SchedulerSettings()
        self._scheduler = Scheduler(self.settings)
        self._accounts: dict[str, Account] = {}
        self._holds: dict[int, Hold] = {}
        self._customers: dict[int, str] = {}
        self._needs: dict[int, Resources] = {}

    def decide(self, jobs: Sequence[Job], market: Market) -> Decision:
        for job in jobs:
            if job.id not in self._needs:
                self._customers[job.id], self._needs[job.id] = job.customer, Resources.of(job.definition)
        self._note(market)
        usage = usage_at(market.now, self._accounts, self._holds.values(), self.settings)
        considered, all_with_room = self._considered(jobs, market)
        result = self._scheduler.round(considered, market, {}, usage)
        if result.assignments and not all_with_room:
            return Decision(result.assignments, market.now)
        return Decision(result.assignments, self._next_round(result, market.now))

    def _next_round(self, result: Round, now: int) -> int:
        """Return when the first waiting job can be assigned.

        One that could start now waits for a change, not for a time.
        """
        ahead_s = int(self.settings.assign_ahead_s)
        later = [one.estimated_start - ahead_s for one in result.waiting if one.estimated_start - ahead_s > now]
        return min(later, default=now + RETRY_S)

    def _considered(self, jobs: Sequence[Job], market: Market) -> tuple[list[Job], bool]:
        """Return the jobs of a round: the oldest of each customer, which reserve starts, and those with room now.

        No other job can be assigned. Also returns whether all jobs with room are among them.
        """
        horizon = market.now + self.settings.assign_ahead_s
        steps = [[step for step in free_steps(one, market.now) if step.at <= horizon] for one in market.clusters]
        free = [few[-1] for few in steps if few]
        has_room: dict[Resources, bool] = {}
        oldest: Counter[str] = Counter()
        more: Counter[str] = Counter()
        found = []
        for job in jobs:
            needs = self._needs[job.id]
            if needs not in has_room:
                has_room[needs] = any(step.holds(needs) for step in free)
            if oldest[job.customer] < OLDEST:
                oldest[job.customer] += 1
                found.append(job)
            elif has_room[needs]:
                more[job.customer] += 1
                if more[job.customer] <= MORE:
                    found.append(job)
        return found, max(more.values(), default=0) <= MORE

    def _note(self, market: Market) -> None:
        """Count the resources in use from now on, and ended use until now."""
        busy = {hot.job_id: hot for cluster in market.clusters for hot in cluster.busy}
        for job_id in [one for one in self._holds if one not in busy]:
            hold = self._holds.pop(job_id)
            account = self._accounts.get(hold.customer, Account())
            self._accounts[hold.customer] = account.with_hold(hold, market.now, self.settings.half_life_s)
        for job_id in busy.keys() - self._holds.keys():
            self._holds[job_id] = Hold(self._customers[job_id], busy[job_id].needs, market.now)
