"""The order in which customers are served: by dominant share with decay, and by age. Pure.

A customer's *share* is the largest part that it takes of any resource: Dominant Resource Fairness (Ghodsi et
al., NSDI 2011). Its use is the mean of present use and of past use (`scheduling.past_use`).

A job's *key* is the share that its customer had with all its earlier jobs served; the lowest key comes first.
So customers take turns, and 10,000 jobs of one delay the first job of another by one turn. The oldest job of
each customer gains with every day of waiting, without bound, so no job waits forever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepgrid.lifecycle.job import Job
from deepgrid.scheduling.market import ClusterState, Resources, Usage
from deepgrid.scheduling.occupancy import capacity

DAY_S = 86_400
NAMES = ("CPUs", "memory", "GPUs")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Share:
    """A customer's dominant share of the grid, 0 to 1, and the resource that dominates."""

    value: float
    resource: str


def total(clusters: Iterable[ClusterState]) -> Resources:
    """Return everything that these clusters have."""
    every = [capacity(one.provider.hardware) for one in clusters]
    return Resources(*map(sum, zip(*every, strict=True)))


class FairShare:
    """Shares of a grid of this size."""

    def __init__(self, usage: Usage, grid: Resources) -> None:
        self._usage = usage
        self._grid = np.maximum(np.array(grid, np.float64), 1e-9)

    def parts(self, customer: str) -> Floats:
        """Return the customer's part of each resource."""
        none = Resources()
        used = (self._usage.past.get(customer, none) + self._usage.present.get(customer, none)) * 0.5
        part: Floats = np.array(used) / self._grid
        return part

    def share(self, customer: str) -> Share:
        """Return the customer's dominant share."""
        parts = self.parts(customer)
        largest = int(parts.argmax())
        return Share(min(1.0, float(parts[largest])), NAMES[largest])

    def line(self, jobs: Sequence[Job], now: int, age_share_per_day: float) -> list[Job]:
        """Return the jobs in the order in which they are served."""
        if not jobs:
            return []
        jobs = sorted(jobs, key=lambda job: (job.submitted_at, job.id))
        customers: dict[str, int] = {}
        of = np.array([customers.setdefault(job.customer, len(customers)) for job in jobs])
        asked = np.array([Resources.of(job.definition) for job in jobs], np.float64) / self._grid
        own = np.argsort(of, kind="stable")  # jobs customer by customer, oldest first
        before = np.cumsum(asked[own], axis=0) - asked[own]
        firsts = np.searchsorted(of[own], np.arange(len(customers)))
        standing = np.array([self.parts(one) for one in customers])
        keys = np.empty(len(jobs))
        keys[own] = (before - before[firsts][of[own]] + standing[of[own]]).max(axis=1)
        oldest = own[firsts]
        submitted = np.array([jobs[index].submitted_at for index in oldest], np.float64)
        keys[oldest] -= np.maximum(0.0, now - submitted) / DAY_S * age_share_per_day
        keys = keys.round(12)  # equal shares are equal; then the older job comes first
        return [jobs[index] for index in np.argsort(keys, kind="stable")]
