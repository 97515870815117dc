"""The plain double loop over jobs and clusters: the cheapest that fits, then the least busy, oldest job first.

deepgrid used it before `deepgrid.scheduling.rounds.scheduler`. The benchmark compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deepgrid.billing.credits import format_credits
from deepgrid.billing.formulas import affordable_minutes, rate_wei_per_minute
from deepgrid.lifecycle.job import Job, Provider
from deepgrid.scheduling.fit import misfit, mismatch


@dataclass(frozen=True, slots=True)
class Cluster:
    """A provider that accepts jobs, and the CPUs that its hot jobs occupy or wait for."""

    provider: Provider
    cpus_taken: int = 0

    @property
    def name(self) -> str:
        return self.provider.name

    @property
    def load(self) -> float:
        return self.cpus_taken / max(1, sum(self.provider.hardware.cpus_per_node))


@dataclass(frozen=True, slots=True)
class Assignment:
    """A job, its provider, and the reason for this choice."""

    job_id: int
    provider: str
    reason: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that no cluster can take now, and the reason."""

    job_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class Offer:
    """A cluster that would take a job, at its rate."""

    cluster: Cluster
    rate_wei: int


def match(
    jobs: Sequence[Job], clusters: Sequence[Cluster], refusals: Mapping[int, Mapping[str, str]] | None = None
) -> list[Assignment | Waiting]:
    """Decide on each job. Earlier assignments of the same call count as load.

    `refusals` maps a job id to the addresses that gave it back, each with the reason.
    """
    taken = {c.provider.address: c.cpus_taken for c in clusters}
    decisions: list[Assignment | Waiting] = []
    for job in sorted(jobs, key=lambda j: (j.submitted_at, j.id)):
        now = [Cluster(c.provider, taken[c.provider.address]) for c in clusters]
        decision = _place(job, now, (refusals or {}).get(job.id, {}))
        if isinstance(decision, Assignment):
            taken[decision.provider] += job.definition.ntasks * job.definition.cpus_per_task
        decisions.append(decision)
    return decisions


def _place(job: Job, clusters: Sequence[Cluster], refused: Mapping[str, str]) -> Assignment | Waiting:
    if not clusters:
        return Waiting(job.id, "no cluster is approved and open for jobs")
    offers: list[Offer] = []
    obstacles: list[str] = []
    for cluster in clusters:
        rate = rate_wei_per_minute(job.definition, cluster.provider.prices)
        obstacle = _obstacle(job, cluster, rate, refused)
        if obstacle:
            obstacles.append(f"{cluster.name}: {obstacle}")
        else:
            offers.append(Offer(cluster, rate))
    if not offers:
        return Waiting(job.id, "no cluster can take it: " + "; ".join(obstacles))
    best = min(offers, key=lambda o: (o.rate_wei, o.cluster.load, o.cluster.provider.address))
    return Assignment(job.id, best.cluster.provider.address, _why(best, offers))


def _obstacle(job: Job, cluster: Cluster, rate: int, refused: Mapping[str, str]) -> str:
    definition, provider = job.definition, cluster.provider
    if provider.address in refused:
        return f"gave it back lately ({refused[provider.address] or 'no reason given'})"
    problem = misfit(definition, provider.hardware)
    if problem:
        return problem
    missing = mismatch(provider.labels, definition.uses, definition.affinity, definition.gpus)
    if missing:
        return missing
    if affordable_minutes(job.locked_wei, rate) < 1:
        return f"one minute costs {format_credits(rate)} credits, {format_credits(job.locked_wei)} are locked"
    return ""


def _why(best: Offer, offers: Sequence[Offer]) -> str:
    price = f"{best.cluster.name} fits at {format_credits(best.rate_wei)} credits per minute"
    if len(offers) == 1:
        return f"{price}, the only cluster that can take it"
    cheaper = [o for o in offers if o.rate_wei > best.rate_wei]
    if len(cheaper) == len(offers) - 1:
        return f"{price}, the cheapest of {len(offers)} clusters"
    return f"{price}, the least busy ({best.cluster.load:.0%}) of those at the lowest price"
