"""The input and output of the scheduler's rounds, as plain values. Needs no numpy.

A round gets the pending jobs and the market: the clusters with their hot jobs. It returns assignments, and
for each job that stays pending the reason and its place in the line. Money is an int of wei, times are unix
seconds, memory is MB, durations carry their unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from deepgrid.lifecycle.job import Job, JobDefinition, Provider
from deepgrid.lifecycle.states import JobStatus

MOST_EVENTS = 50.0  # the counters of a provider's whole life count as at most this many events


class Resources(NamedTuple):
    """An amount of each resource that customers compete for."""

    cpus: float = 0.0
    mem_mb: float = 0.0
    gpus: float = 0.0

    def __add__(self, other: Resources) -> Resources:  # type: ignore[override]  # an amount, not a sequence
        return Resources(self.cpus + other.cpus, self.mem_mb + other.mem_mb, self.gpus + other.gpus)

    def __mul__(self, factor: float) -> Resources:  # type: ignore[override]
        return Resources(self.cpus * factor, self.mem_mb * factor, self.gpus * factor)

    @staticmethod
    def of(definition: JobDefinition) -> Resources:
        """Return the resources that a job requests in total."""
        cpus = definition.ntasks * definition.cpus_per_task
        return Resources(cpus, cpus * definition.mem_per_cpu_mb, definition.gpus)


@dataclass(frozen=True, slots=True)
class HotJob:
    """A job that a cluster runs or is about to run.

    `needs` is what it occupies in total. `remaining_minutes` is what is left of its time limit.
    """

    job_id: int
    needs: Resources
    remaining_minutes: int
    status: JobStatus

    @classmethod
    def of(cls, job: Job, now: int) -> Self:
        """Return an assigned, claimed or running job, with the minutes that it may still run at `now`."""
        left = job.granted_minutes
        if job.status is JobStatus.RUNNING:
            left = max(1, left - max(0, now - job.started_at) // 60)
        return cls(job.id, Resources.of(job.definition), left, job.status)


@dataclass(frozen=True, slots=True)
class Reliability:
    """Events at a provider: jobs that it served, refused or panicked, and claims that came too late.

    The counts decay (`decayed`), so old events matter less. A provider without events has the value 0.9.
    """

    served: float = 0.0
    refused: float = 0.0
    panicked: float = 0.0
    late: float = 0.0

    @classmethod
    def of_life(cls, started: int, refused: int, panicked: int, timed_out: int) -> Self:
        """Return the counters of a provider's whole life as if it had been lately, shortened to MOST_EVENTS."""
        counts = (started, refused, panicked, timed_out)
        share = min(1.0, MOST_EVENTS / max(1, sum(counts)))
        return cls(*(count * share for count in counts))

    @property
    def value(self) -> float:
        """Estimated chance from 0 to 1 that the next job is served: rule of succession with a prior of 9 in 10."""
        return (self.served + 9) / (self.served + self.refused + self.panicked + self.late + 10)

    def decayed(self, elapsed_s: float, half_life_s: float) -> Reliability:
        """Return the counts after `elapsed_s` without an event: halved once per half life."""
        kept = 0.5 ** (max(0.0, elapsed_s) / half_life_s)
        return Reliability(self.served * kept, self.refused * kept, self.panicked * kept, self.late * kept)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A provider and what its cluster does now.

    Attributes:
        provider: As registered. A provider that is not in force gets no job.
        busy: Its hot jobs. Running jobs in any order, the others in the order of its queue.
        record: How reliable it was lately.
        speed: Measured speed per kind of job (`speed.kind_of`); higher is faster. Kinds may be missing.
        raised_at: Unix time of the last raise of its prices, 0 if no job depends on it.
    """

    provider: Provider
    busy: Sequence[HotJob] = ()
    record: Reliability = Reliability()
    speed: Mapping[str, float] = field(default_factory=dict)
    raised_at: int = 0


@dataclass(frozen=True, slots=True)
class Market:
    """All clusters at `now` (the chain's time, unix seconds)."""

    clusters: Sequence[ClusterState]
    now: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Use of the grid per customer.

    Attributes:
        past: Average resources in use, with exponential decay (`past_use`).
        present: Resources of the customer's jobs that are assigned, claimed or running.
        waits: Customers whose pending jobs wait after too many cancels, until this unix time.
    """

    past: Mapping[str, Resources] = field(default_factory=dict)
    present: Mapping[str, Resources] = field(default_factory=dict)
    waits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Weights:
    """The weight of each part of the score. A part is 0 at its best, about 1 when clearly worse."""

    start: float = 1.0
    price: float = 1.0
    speed: float = 0.5
    reliability: float = 1.0
    spread: float = 0.2


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """The scheduler's configuration; the operator block holds these fields.

    Attributes:
        weights: Of the parts of the score.
        assign_ahead_s: A job is assigned when its estimated start is at most this far away.
        half_life_s: After this time, past use counts half.
        age_share_per_day: For each day of waiting, a customer's oldest job gains this share of the grid.
        start_scale_s: An estimated start this far away scores 1, as bad as a price twice the lowest.
        max_tries: After this many providers gave a job back, it is not assigned again.
        free_cancels: A customer may cancel this many jobs that kept a cluster from others and never ran. One half
            life ago counts half. After more, its pending jobs wait.
    """

    weights: Weights = Weights()
    assign_ahead_s: float = 60.0
    half_life_s: float = 86_400.0
    age_share_per_day: float = 0.25
    start_scale_s: float = 3_600.0
    max_tries: int = 10
    free_cancels: int = 3


@dataclass(frozen=True, slots=True)
class Assignment:
    """A job, the address of its provider, the reason for this choice, and when it should start (unix time)."""

    job_id: int
    provider: str
    reason: str
    estimated_start: int = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that stays pending.

    Attributes:
        job_id: The job.
        reason: Why, with clusters grouped: `312 clusters lack 8 GPUs, 40 are too expensive, 3 are full`.
        position: Place in the line of jobs that some cluster can run, from 1; 0 when no cluster can run it.
        ahead_of_others: How many of the jobs before it belong to other customers.
        share: The customer's dominant share of the grid, 0 to 1.
        estimated_start: Unix time; 0 when unknown.
        cluster: Name of the cluster where it should start; empty when unknown.
        resource: The resource that `share` is about: `CPUs`, `memory` or `GPUs`.
        has_reservation: Whether it is the next job at that cluster.
    """

    job_id: int
    reason: str
    position: int = 0
    ahead_of_others: int = 0
    share: float = 0.0
    estimated_start: int = 0
    cluster: str = ""
    resource: str = "CPUs"
    has_reservation: bool = False


@dataclass(frozen=True, slots=True)
class Round:
    """The decisions of one round.

    `shares` maps customers to their dominant share of the grid, 0 to 1. `left` jobs were left to the next round.
    """

    assignments: list[Assignment]
    waiting: list[Waiting]
    shares: Mapping[str, float]
    left: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """The offer of one cluster for a job.

    Attributes:
        provider: Its address.
        cluster: Its name.
        obstacle: Why it cannot take the job; empty when it can.
        rate_wei: Price per minute.
        minutes: Whole minutes that the locked credits buy.
        estimated_start: Unix time; 0 when it cannot take the job.
        speed: Measured speed for the job's kind, 0 when not measured.
        reliability: 0 to 1.
    """

    provider: str
    cluster: str
    obstacle: str
    rate_wei: int
    minutes: int
    estimated_start: int
    speed: float
    reliability: float

    @property
    def fits(self) -> bool:
        """Whether the cluster can take the job, now or later."""
        return not self.obstacle
