"""Figures from several samples: their median and their spread, and when they are noisy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

MOST_SAMPLES = 100  # of one figure; output of a node may repeat a line any number of times
LARGEST = 1e15


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of one figure, in the order in which they were taken."""

    values: tuple[float, ...]

    @property
    def value(self) -> float:
        """The figure: the median of its samples."""
        return float(median(self.values))

    @property
    def spread_percent(self) -> float:
        """The difference of the largest and the smallest sample, in percent of the median; 0 for one sample."""
        return 100 * (max(self.values) - min(self.values)) / self.value

    def is_noisy(self, most_percent: float) -> bool:
        """Return whether the samples differ by more than `most_percent` of their median."""
        return self.spread_percent > most_percent


def collect(pairs: Iterable[tuple[str, str]]) -> dict[str, Samples]:
    """Return the samples by key. Implausible numbers are left out, and all samples after the first MOST_SAMPLES."""
    found: dict[str, list[float]] = {}
    for key, text in pairs:
        value = plausible(text)
        if value is not None and len(samples := found.setdefault(key, [])) < MOST_SAMPLES:
            samples.append(value)
    return {key: Samples(tuple(values)) for key, values in found.items() if values}


def plausible(text: str) -> float | None:
    """Return a positive finite number below LARGEST, otherwise None. The text comes from a node."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0 < value < LARGEST else None
