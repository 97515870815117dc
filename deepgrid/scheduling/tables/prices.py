"""Prices of jobs at all clusters: floats for scores, and comparisons that are exact to the wei.

A float is wrong by less than `ROUNDING` of its value. Where two amounts are closer than that, Python's ints
decide. So comparisons are as fast as those of floats and as exact as those of ints ("filtered" predicates;
Fortune and Van Wyk, "Efficient exact arithmetic for computational geometry", 1993).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from deepgrid.billing.formulas import rate_wei_per_minute
from deepgrid.lifecycle.job import Prices
from deepgrid.scheduling.tables.fits import Shape

ROUNDING = 1e-14
"""More than the relative error of a rate in floats: three roundings of prices, five of products and sums."""

Floats = npt.NDArray[np.float64]
Indexes = npt.NDArray[np.intp]


class PriceTable:
    """The rate of a shape at each cluster, in wei per minute."""

    def __init__(self, prices: Sequence[Prices]) -> None:
        self.prices = tuple(prices)
        lists: dict[Prices, int] = {}
        self._list = np.array([lists.setdefault(one, len(lists)) for one in prices], np.intp)
        self._gpu = np.array([float(one.gpu_wei_per_minute) for one in prices])
        self._cpu = np.array([float(one.cpu_wei_per_minute) for one in prices])
        self._mem = np.array([float(one.mem_wei_per_mb_minute) for one in prices])

    def rates(self, shape: Shape, clusters: Indexes) -> Floats:
        """The rates at these clusters, rounded."""
        cpus, mem_mb = float(shape.cpus), float(shape.cpus * shape.mem_per_cpu_mb)
        rates = self._cpu[clusters] * cpus + self._mem[clusters] * mem_mb
        return rates + self._gpu[clusters] * float(shape.gpus) if shape.gpus else rates

    def exact(self, shape: Shape, cluster: int) -> int:
        """The rate at one cluster, to the wei."""
        return rate_wei_per_minute(shape, self.prices[cluster])

    def at_most(self, limit_wei: int, shape: Shape, clusters: Indexes, rates: Floats) -> npt.NDArray[np.bool_]:
        """Whether the rates at these clusters are at most `limit_wei`, to the wei."""
        limit = float(limit_wei)
        within = rates <= limit
        near = np.flatnonzero(np.abs(rates - limit) <= ROUNDING * limit)
        within[near] = [rate <= limit_wei for rate in self._exact(shape, clusters[near])]
        return within

    def are_cheapest(self, shape: Shape, clusters: Indexes) -> npt.NDArray[np.bool_]:
        """Which of these clusters have the lowest rate, to the wei."""
        rates = self.rates(shape, clusters)
        near = np.flatnonzero(rates <= rates.min() * (1 + 4 * ROUNDING))
        exact = self._exact(shape, clusters[near])
        are = np.zeros(len(clusters), np.bool_)
        lowest = min(exact)
        are[near] = [rate == lowest for rate in exact]
        return are

    def _exact(self, shape: Shape, clusters: Indexes) -> list[int]:
        """The exact rates; computed once per distinct price list."""
        known: dict[int, int] = {}
        lists = self._list[clusters].tolist()
        for number, cluster in zip(lists, clusters.tolist(), strict=True):
            if number not in known:
                known[number] = self.exact(shape, cluster)
        return [known[number] for number in lists]
