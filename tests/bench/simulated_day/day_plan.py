"""What a simulated day offers: customers, sweeps of jobs, and clusters with room for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from deepgrid.lifecycle.job import JobDefinition
from tests.chain.grid import CREDIT, DEFINITION

DAY_S = 86_400
CLUSTER_CPUS = (4, 8, 16)
JOB_CPUS = (1, 2, 4)
LOCKED_CREDITS = 20_000
USED_SHARE = 0.5
"""Share of all CPUs that the offered jobs keep busy."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Jobs of one customer that are requested in one transaction. `at_s` is in seconds after the start of the day."""

    at_s: float
    customer: int
    jobs: int
    definition: JobDefinition
    run_minutes: int


@dataclass(frozen=True, slots=True)
class DayPlan:
    """The size of a simulated day.

    Attributes:
        jobs: Number of jobs of the day.
        providers: Number of clusters.
        customers: Number of customers, who all ask for the same amount of work.
        offered_per_s: Jobs that are offered per second of this machine's clock.
        sweep: Jobs per sweep.
    """

    jobs: int
    providers: int = 1_000
    customers: int = 100
    offered_per_s: float = 120.0
    sweep: int = 50

    @property
    def seconds(self) -> float:
        """Seconds that the day takes by this machine's clock."""
        return self.jobs / self.offered_per_s

    @property
    def speed(self) -> float:
        """Seconds of the chain's clock per second of this machine's clock."""
        return DAY_S / self.seconds

    def cluster_cpus(self, number: int) -> int:
        """Return the CPUs of a cluster."""
        return CLUSTER_CPUS[number % len(CLUSTER_CPUS)]

    @property
    def mean_run_minutes(self) -> float:
        """Mean run time with which the offered jobs keep USED_SHARE of all CPUs busy."""
        cpus = sum(map(self.cluster_cpus, range(self.providers)))
        per_job = sum(JOB_CPUS) / len(JOB_CPUS)
        return USED_SHARE * cpus * DAY_S / (self.jobs * per_job) / 60

    def sweeps(self) -> Iterator[Sweep]:
        """Yield all sweeps in the order of their times. Customers take turns with the same shapes of jobs."""
        chance = Random(46)
        shapes = [
            (replace(DEFINITION, gpus=0, ntasks=1, cpus_per_task=cpus, mem_per_cpu_mb=100, uses=(), affinity=()), share)
            for cpus in JOB_CPUS
            for share in (0.5, 1.0, 1.5)
        ]
        orders = [chance.sample(shapes, len(shapes)) for _ in range(self.customers)]
        count = -(-self.jobs // self.sweep)
        for number in range(count):
            turn, customer = divmod(number, self.customers)
            definition, share = orders[customer][turn % len(shapes)]
            jobs = min(self.sweep, self.jobs - number * self.sweep)
            run_minutes = max(1, round(share * self.mean_run_minutes))
            yield Sweep(number * DAY_S / count, customer, jobs, definition, run_minutes)

    @property
    def locked_wei(self) -> int:
        """Deposit of a job: more than enough for its run at the most expensive cluster."""
        return LOCKED_CREDITS * CREDIT
