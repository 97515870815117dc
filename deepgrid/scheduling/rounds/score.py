"""Scores clusters for a job: a weighted sum of parts, the lowest is best. Pure.

Each part is 0 for the best cluster, and about 1 for a clearly worse one. `FIXED` parts do not change during a
round; `MOVING` parts do, as the round fills clusters. To add a part, write a function, add its weight to
`market.Weights`, and list it here under the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from deepgrid.lifecycle.job import Prefer
from deepgrid.scheduling.market import Weights

PREFERRED = 10.0
"""The weight of the part that a customer prefers is multiplied by this."""

Floats = npt.NDArray[np.float64]
Facts = TypeVar("Facts")


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of clusters for a job; one element per cluster. A speed of 0 means not measured."""

    rates: Floats
    speeds: Floats
    reliabilities: Floats


@dataclass(frozen=True, slots=True)
class Room:
    """The load of clusters; one element per cluster.

    `waits_s` are seconds to the estimated start. `loads` are the taken parts of the clusters, 0 to 1.
    """

    waits_s: Floats
    loads: Floats
    start_scale_s: float


def start(room: Room) -> Floats:
    """Return the wait for the estimated start, in units of `start_scale_s`."""
    return room.waits_s / room.start_scale_s


def price(terms: Terms) -> Floats:
    """Return the price relative to the lowest: 0.5 is half as much again.

    Next to a free cluster, relative to the highest.
    """
    low = terms.rates.min()
    part: Floats = (terms.rates - low) / (low or terms.rates.max() or 1.0)
    return part


def speed(terms: Terms) -> Floats:
    """Return how much longer than on the fastest cluster a job may run, at most 1.

    Not measured counts as half as fast.
    """
    fastest = terms.speeds.max()
    if not fastest:
        return np.zeros(len(terms.speeds))
    speeds = np.where(terms.speeds > 0, terms.speeds, fastest / 2)
    part: Floats = np.minimum(1.0, fastest / speeds - 1.0)
    return part


def reliability(terms: Terms) -> Floats:
    """Return the estimated chance that the provider does not serve the job."""
    return 1.0 - terms.reliabilities


def spread(room: Room) -> Floats:
    """Return the load: jobs go to clusters with more room, and a cluster's failure ends fewer of them."""
    return room.loads


FIXED: dict[str, Callable[[Terms], Floats]] = {"price": price, "speed": speed, "reliability": reliability}
MOVING: dict[str, Callable[[Room], Floats]] = {"start": start, "spread": spread}


def fixed_score(terms: Terms, weights: Weights) -> Floats:
    """Return the weighted sum of the parts that stay the same during a round."""
    return _add_weighted(FIXED, terms, weights, np.zeros(len(terms.rates)))


def moving(room: Room, weights: Weights) -> Floats:
    """Return the weighted sum of the parts that change as a round fills clusters."""
    return _add_weighted(MOVING, room, weights, np.zeros(len(room.waits_s)))


def _add_weighted(
    parts: Mapping[str, Callable[[Facts], Floats]], facts: Facts, weights: Weights, result: Floats
) -> Floats:
    for name, part in parts.items():
        if weight := getattr(weights, name):
            result += weight * part(facts)
    return result


def preferring(weights: Weights, prefer: Prefer) -> Weights:
    """Return the weights for a job whose customer prefers something."""
    if prefer is Prefer.BALANCED:
        return weights
    part = prefer.name.lower()
    return replace(weights, **{part: PREFERRED * getattr(weights, part)})
