"""Generated workloads: arrivals, sizes and run times in the manner of Lublin and Feitelson (JPDC 63, 2003).

Sizes are two-stage uniform in log2, with many serial jobs and powers of two. Run times are hyper-gamma in the
logarithm: most jobs take about a minute, some take hours, and large jobs are more often long. Arrivals follow a daily
cycle. Beyond that model, jobs come in sessions of one customer: single jobs, or sweeps of similar ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

DAY_S = 86_400
MOST_RUN_S = 4 * 3600
MOST_SWEEP_RUN_S = 1800
SWEEP_CHANCE = 0.02
LIMITS_S = tuple(60 * minutes for minutes in (5, 10, 15, 30, 60, 120, 240, 480, 720, 1440))
"""Time limits that users ask for."""
BURSTS = {"steady": 0, "at once": 1, "four bursts": 4}
"""How the customers of `equal_demand` submit: spread evenly, or in this number of bursts."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a workload. `run_s` is its run time on a cluster of speed 1."""

    number: int
    customer: str
    submitted_s: int
    run_s: int
    requested_s: int
    ntasks: int
    cpus_per_task: int
    mem_per_cpu_mb: int
    gpus: int = 0

    @property
    def cpus(self) -> int:
        return self.ntasks * self.cpus_per_task

    @property
    def work(self) -> int:
        """Return the CPU seconds at speed 1."""
        return self.cpus * self.run_s


def mixed_workload(seed: int, jobs: int = 6_000, customers: int = 12) -> list[TraceJob]:
    """Return single jobs and sweeps of customers whose demands differ by more than ten times. Two days, unscaled."""
    random = Random(f"mixed {seed}")
    weights = [1 / rank**1.2 for rank in range(1, customers + 1)]
    found: list[TraceJob] = []
    while len(found) < jobs:
        customer = f"customer-{random.choices(range(1, customers + 1), weights)[0]:02}"
        at = _arrival(random, 2 * DAY_S)
        sweep = random.random() < SWEEP_CHANCE
        body = _body(random, customer, MOST_SWEEP_RUN_S if sweep else MOST_RUN_S)
        for _ in range(random.randrange(50, 200) if sweep else 1 + int(random.expovariate(1 / 3))):
            run_s = max(1, min(MOST_RUN_S, round(body.run_s * random.uniform(0.8, 1.2))))
            found.append(replace(body, submitted_s=at, run_s=run_s, requested_s=max(body.requested_s, _limit(run_s))))
            at += random.randrange(0, 5)
    return number_jobs(found[:jobs])


def equal_demand(seed: int, jobs: int = 2_400, customers: int = 8) -> list[TraceJob]:
    """Return customers who submit the same jobs, each in another order and pattern. One day, unscaled."""
    random = Random(f"equal {seed}")
    bodies = [_body(random, "") for _ in range(jobs // customers)]
    found: list[TraceJob] = []
    for number in range(customers):
        order = bodies.copy()
        random.shuffle(order)
        bursts = list(BURSTS.values())[number % len(BURSTS)]
        for position, body in enumerate(order):
            part = position / len(order)
            at = round(DAY_S * (math.floor(part * bursts) / bursts if bursts else part))
            found.append(replace(body, customer=f"customer-{number + 1:02}", submitted_s=at + random.randrange(60)))
    return number_jobs(found)


def with_load(jobs: Sequence[TraceJob], capacity: float, load: float) -> list[TraceJob]:
    """Stretch the arrivals so that the jobs demand `load` of `capacity` (CPUs, times their speed) till the last one."""
    last = max(job.submitted_s for job in jobs)
    factor = sum(job.work for job in jobs) / (capacity * load * max(1, last))
    return [replace(job, submitted_s=round(job.submitted_s * factor)) for job in jobs]


def number_jobs(jobs: Iterable[TraceJob]) -> list[TraceJob]:
    """Return the jobs in the order of submission, numbered from 1. Submissions begin at 0."""
    order = sorted(jobs, key=lambda job: (job.submitted_s, job.customer))
    first = order[0].submitted_s if order else 0
    return [replace(job, number=at, submitted_s=job.submitted_s - first) for at, job in enumerate(order, 1)]


def _body(random: Random, customer: str, most_run_s: int = MOST_RUN_S) -> TraceJob:
    """Return a job without its arrival."""
    gpus, cpus_per_task = 0, 1
    if random.random() < 0.10:
        gpus = random.choice((1, 1, 1, 1, 2, 2, 4))
        ntasks, cpus_per_task = gpus, 4
    else:
        size = _size(random)
        if size <= 8:
            ntasks, cpus_per_task = 1, size
        elif size % 8 == 0:
            ntasks, cpus_per_task = size // 8, 8
        else:
            ntasks = size
    run_s = min(most_run_s, _run_s(random, ntasks * cpus_per_task))
    mem = random.choice((1024, 2048, 2048, 3072)) if random.random() < 0.93 else 7 * 1024
    return TraceJob(0, customer, 0, run_s, _limit(run_s * random.choice((1, 2, 4))), ntasks, cpus_per_task, mem, gpus)


def _size(random: Random, serial: float = 0.244, power: float = 0.576, low: float = 0.8, high: float = 5.0) -> int:
    """Return the number of CPUs, at most 2**`high`."""
    kind = random.random()
    if kind < serial:
        return 1
    medium = high - 2.5
    exponent = random.uniform(low, medium) if random.random() < 0.86 else random.uniform(medium, high)
    return 2 ** round(exponent) if kind < serial + power else max(2, round(2**exponent))


def _run_s(random: Random, cpus: int) -> int:
    short = min(1.0, max(0.0, 0.78 - 0.0054 * cpus))
    exponent = random.gammavariate(4.2, 0.94) if random.random() < short else random.gammavariate(312, 0.03)
    return max(1, min(MOST_RUN_S, round(math.exp(min(exponent, 12)))))


def _limit(run_s: float) -> int:
    """Return the smallest usual time limit that leaves a reserve of a tenth."""
    return next((limit for limit in LIMITS_S if limit >= 1.1 * run_s), LIMITS_S[-1])


def _arrival(random: Random, span_s: int) -> int:
    """Return a moment of `span_s`: three times as likely at 14:00 as at 2:00."""
    while True:
        at = random.randrange(span_s)
        if random.random() < (2 - math.cos(2 * math.pi * (at / DAY_S - 2 / 24))) / 3:
            return at
