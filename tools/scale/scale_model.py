"""The size of a grid for a number of jobs and clusters: processes of each part, what breaks first, costs per job.

Everything is computed from the figures of the benchmarks. A part without figures is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tools.scale.bench_figures import Figure

DAY_S = 86_400
JOBS_PER_DAY = (10**4, 10**6, 10**8)
PROVIDERS = (10, 1_000, 10_000)
PEAK = 3.0
"""The busiest hour's rate, as a multiple of the day's mean rate."""
BUSY_SHARE = 0.7
"""Share of its limit up to which a part is planned."""
BLOCK_GAS_PER_S = 30_000_000
"""Gas per second of a chain with the contracts' planned limit of 30 million per block and a block per second."""

Figures = Mapping[tuple[str, str], Figure]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the grid. `limit_per_s` are jobs per second of one unit, at its full use."""

    name: str
    unit: str
    limit_per_s: float
    source: str
    per_provider: bool = False

    def count(self, jobs_per_s: float, providers: int) -> int:
        """Return how many units carry this peak rate. A part per provider has at least one unit each."""
        most = self.limit_per_s * BUSY_SHARE
        if self.per_provider:
            return providers * max(1, math.ceil(jobs_per_s / providers / most))
        return max(1, math.ceil(jobs_per_s / most))

    def use(self, jobs_per_s: float, providers: int) -> float:
        """Return the use of one unit that carries everything, or one provider's part of everything."""
        return jobs_per_s / (providers if self.per_provider else 1) / self.limit_per_s


def parts(figures: Figures) -> list[Part]:
    """Return the parts that have figures."""
    found = []
    for name, unit, bench, figure, per_provider in (
        ("operator", "process, one per contract", "capacity", "operator_cpu_ms_per_job", False),
        ("services, notices only", "process", "capacity", "services_cpu_ms_per_job", False),
        ("node of the chain", "process", "capacity", "node_cpu_ms_per_job", False),
        ("supervisor with Prefect, Slurm and its part of the services", "core", "supervisor", "cpu_ms", True),
    ):
        if (known := figures.get((bench, figure))) is not None:
            found.append(Part(name, unit, 1000 / known.value, f"{bench}, {figure}", per_provider))
    for name, unit, bench, figure, per_provider in (
        ("uploads of definitions", "process", "uploads", "per_s", False),
        ("one supervisor process", "process", "supervisor", "jobs_per_s", True),
    ):
        if (known := figures.get((bench, figure))) is not None:
            found.append(Part(name, unit, known.value, f"{bench}, {figure}", per_provider))
    if (gas := figures.get(("capacity", "gas_per_job"))) is not None:
        found.append(
            Part("gas of the chain", "contract on its own chain", BLOCK_GAS_PER_S / gas.value, "capacity, gas_per_job")
        )
    return found


def peak_per_s(jobs_per_day: int) -> float:
    """Return the planned peak rate."""
    return PEAK * jobs_per_day / DAY_S


def first_to_break(known: list[Part], jobs_per_day: int, providers: int) -> tuple[Part, float]:
    """Return the part whose single unit is used most at the peak, and its use."""
    peak = peak_per_s(jobs_per_day)
    part = max(known, key=lambda one: one.use(peak, providers))
    return part, part.use(peak, providers)


def regions(known: list[Part], jobs_per_day: int) -> int:
    """Return how many contracts the peak needs, each with its own operator and chain."""
    names = {"operator", "gas of the chain"}
    return max((one.count(peak_per_s(jobs_per_day), 1) for one in known if one.name in names), default=1)
