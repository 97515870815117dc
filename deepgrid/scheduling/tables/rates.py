"""Prices of jobs at all clusters: floats for scores, and comparisons that are exact to the wei.

A float is wrong by less than `ROUNDING` of its value. Where two amounts are closer than that, Python's ints
decide. So comparisons are as fast as with floats and as exact as with ints ("filtered" predicates;
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
Mask = npt.NDArray[np.bool_]


class PriceTable:
    """The rate of a shape at each cluster, in wei per minute."""

    def __init__(self, prices: Sequence[Prices]) -> None:
        self.prices = tuple(prices)
        lists: dict[Prices, int] = {}
        self._list = np.array([lists.setdefault(one, len(lists)) for one in prices], np.intp)
        self._gpu = np.array([float(one.gpu_wei_per_minute) for one in prices])
        self._cpu = np.array([float(one.cpu_wei_per_minute) for one in prices])
        self._mem = np.array([float(one.mem_wei_per_mb_minute) for one in prices])

    def rates(self, shape: Shape) -> Floats:
        """Return the rate at each cluster, rounded."""
        rates: Floats = self._cpu * float(shape.cpus)
        rates += self._mem * float(shape.cpus * shape.mem_per_cpu_mb)
        if shape.gpus:
            rates += self._gpu * float(shape.gpus)
        return rates

    def exact(self, shape: Shape, cluster: int) -> int:
        """Return the rate at one cluster, to the wei."""
        return rate_wei_per_minute(shape, self.prices[cluster])

    def at_most(self, limit_wei: int, shape: Shape, rates: Floats) -> Mask:
        """Per cluster, whether its rate is at most `limit_wei`, to the wei. Where `rates` is infinite, it is not."""
        limit = float(limit_wei)
        within: Mask = rates <= limit * (1 - ROUNDING)
        perhaps = rates <= limit * (1 + ROUNDING)
        if np.count_nonzero(within) != np.count_nonzero(perhaps):
            near = np.flatnonzero(within != perhaps)
            within[near] = [rate <= limit_wei for rate in self._exact(shape, near)]
        return within

    def are_cheapest(self, shape: Shape, clusters: Indexes, rates: Floats) -> Mask:
        """Return which of these clusters have the lowest rate, to the wei. `rates` has one element for each of them."""
        near = np.flatnonzero(rates <= rates.min() * (1 + 4 * ROUNDING))
        exact = self._exact(shape, clusters[near])
        are = np.zeros(len(clusters), np.bool_)
        lowest = min(exact)
        are[near] = [rate == lowest for rate in exact]
        return are

    def _exact(self, shape: Shape, clusters: Indexes) -> list[int]:
        """Return the exact rates; computed once per distinct price list."""
        known: dict[int, int] = {}
        lists = self._list[clusters].tolist()
        for number, cluster in zip(lists, clusters.tolist(), strict=True):
            if number not in known:
                known[number] = self.exact(shape, cluster)
        return [known[number] for number in lists]
