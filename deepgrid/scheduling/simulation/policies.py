"""Policies under comparison. Each decides on the pending jobs of a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from deepgrid.billing.formulas import rate_wei_per_minute
from deepgrid.lifecycle.job import Job, JobDefinition, Provider
from deepgrid.scheduling.fit import misfit
from deepgrid.scheduling.market import Assignment, ClusterState, Market


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


class Offers:
    """Providers that fit a definition, with their rates. Each definition is looked up once."""

    def __init__(self) -> None:
        self._known: dict[JobDefinition, list[tuple[int, int]]] = {}

    def of(self, definition: JobDefinition, providers: Sequence[Provider]) -> list[tuple[int, int]]:
        """Rate in wei per minute and index of each provider that fits, cheapest first."""
        if definition not in self._known:
            self._known[definition] = sorted(
                (rate_wei_per_minute(definition, provider.prices), index)
                for index, provider in enumerate(providers)
                if not misfit(definition, provider.hardware)
            )
        return self._known[definition]


class FirstComeCheapest:
    """Each job goes at once to the cheapest cluster that fits. The first version of deepgrid did this."""

    name = "cheapest"

    def __init__(self) -> None:
        self._offers = Offers()

    def decide(self, jobs: Sequence[Job], market: Market) -> Decision:
        providers = [cluster.provider for cluster in market.clusters]
        chosen = [(job, self._offers.of(job.definition, providers)[0][1]) for job in jobs]
        return Decision([Assignment(job.id, providers[index].address, self.name) for job, index in chosen])


class RandomChoice:
    """Each job goes at once to a random cluster that fits."""

    name = "random"

    def __init__(self, seed: int) -> None:
        self._offers, self._random = Offers(), Random(f"choice {seed}")

    def decide(self, jobs: Sequence[Job], market: Market) -> Decision:
        providers = [cluster.provider for cluster in market.clusters]
        chosen = [(job, self._random.choice(self._offers.of(job.definition, providers))[1]) for job in jobs]
        return Decision([Assignment(job.id, providers[index].address, self.name) for job, index in chosen])


class LeastBacklog:
    """Each job goes at once to the cluster that fits and has the least work queued per CPU; then the cheapest."""

    name = "least backlog"

    def __init__(self) -> None:
        self._offers = Offers()

    def decide(self, jobs: Sequence[Job], market: Market) -> Decision:
        providers = [cluster.provider for cluster in market.clusters]
        cpus = [sum(provider.hardware.cpus_per_node) for provider in providers]
        backlog = [float(_cpu_minutes(cluster)) for cluster in market.clusters]
        assignments: list[Assignment] = []
        for job in jobs:
            offers = self._offers.of(job.definition, providers)
            rate, index = min(offers, key=lambda offer: (backlog[offer[1]] / cpus[offer[1]], offer))
            need = job.definition
            minutes = job.locked_wei // rate if rate else 0
            backlog[index] += need.ntasks * need.cpus_per_task * minutes
            assignments.append(Assignment(job.id, providers[index].address, self.name))
        return Decision(assignments)


def _cpu_minutes(cluster: ClusterState) -> int:
    return sum(hot.ntasks * hot.cpus_per_task * hot.remaining_minutes for hot in cluster.busy)
