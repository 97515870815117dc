"""Measures of a simulation.

Utilisation and shares are taken from the first submission to the last one. Later the grid only empties, and
the slowest customer would decide.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from tools.simulation.simulator import Outcome
from tools.simulation.testbed import MILLICREDIT, Site

TAU_S = 10
"""Shorter run times count as this in the bounded slowdown."""


@dataclass(frozen=True, slots=True)
class Measures:
    """Measures of one run.

    Attributes:
        jobs: Jobs that ended.
        mean_wait_s: Mean time from submission to start.
        median_wait_s: Median of it.
        p95_wait_s: 95th percentile of it.
        slowdown: Mean bounded slowdown: max(1, (wait + run) / max(run, 10 s)).
        utilisation: Work done, divided by the capacity of all CPUs.
        jain_customers: Jain's index over customers, of work received divided by work demanded.
        jain_providers: Jain's index over clusters, of their utilisation.
        millicredits_per_cpu_hour: Costs of all jobs, divided by their work at speed 1.
        start_error_s: Median distance between the estimated start at the assignment and the start; -1 without
            estimates.
    """

    jobs: float
    mean_wait_s: float
    median_wait_s: float
    p95_wait_s: float
    slowdown: float
    utilisation: float
    jain_customers: float
    jain_providers: float
    millicredits_per_cpu_hour: float
    start_error_s: float


def measure(outcomes: Sequence[Outcome], sites: Sequence[Site]) -> Measures:
    """Return the measures of a run's outcomes."""
    until = max(outcome.job.submitted_s for outcome in outcomes)
    waits = sorted(outcome.wait_s for outcome in outcomes)
    done = [0.0] * len(sites)
    received: dict[str, float] = defaultdict(float)
    demanded: dict[str, float] = defaultdict(float)
    for outcome in outcomes:
        part = work_before(outcome, sites, until)
        done[outcome.site] += part
        received[outcome.job.customer] += part
        demanded[outcome.job.customer] += outcome.job.work
    errors = [abs(o.started_s - o.estimated_s) for o in outcomes if o.estimated_s >= 0]
    hours = sum(outcome.job.work for outcome in outcomes) / 3600
    return Measures(
        jobs=len(outcomes),
        mean_wait_s=fmean(waits),
        median_wait_s=median(waits),
        p95_wait_s=waits[int(0.95 * (len(waits) - 1))],
        slowdown=fmean(map(bounded_slowdown, outcomes)),
        utilisation=sum(done) / (until * sum(site.capacity for site in sites)) if until else 0.0,
        jain_customers=jain(received[customer] / demanded[customer] for customer in demanded),
        jain_providers=jain(work / site.capacity for work, site in zip(done, sites, strict=True)),
        millicredits_per_cpu_hour=sum(outcome.cost_wei for outcome in outcomes) // MILLICREDIT / hours,
        start_error_s=median(errors) if errors else -1,
    )


def work_before(outcome: Outcome, sites: Sequence[Site], until_s: int) -> float:
    """Return the CPU seconds at speed 1 that the job got before `until_s`."""
    ran_s = max(0, min(outcome.ended_s, until_s) - outcome.started_s)
    return outcome.job.cpus * ran_s * sites[outcome.site].speed


def bounded_slowdown(outcome: Outcome) -> float:
    return max(1.0, (outcome.wait_s + outcome.run_s) / max(outcome.run_s, TAU_S))


def jain(values: Iterable[float]) -> float:
    """Return Jain's fairness index: 1 if all values are equal, 1/n if one of n has everything. 1 for zeros."""
    known = list(values)
    squares = sum(value * value for value in known)
    return sum(known) ** 2 / (len(known) * squares) if squares else 1.0
