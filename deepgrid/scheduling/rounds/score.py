"""How good clusters are for a job: a weighted sum of parts, the lowest is best. Pure.

Each part is 0 for the best cluster, and about 1 for a clearly worse one. `FIXED` parts do not change during a
round; `MOVING` parts do, as the round fills clusters. To add a part, write a class with `name` and `of`, add
its weight to `market.Weights`, and list it here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from deepgrid.lifecycle.job import Prefer
from deepgrid.scheduling.market import Weights

PREFERRED = 10.0
"""The weight of the part that a customer prefers is multiplied by this."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Terms:
    """What clusters are for a job; one element per cluster. A speed of 0 means not measured."""

    rates: Floats
    speeds: Floats
    reliabilities: Floats


@dataclass(frozen=True, slots=True)
class Room:
    """How busy clusters are; one element per cluster.

    `waits_s` are seconds to the estimated start. `loads` are the taken parts of the clusters, 0 to 1.
    """

    waits_s: Floats
    loads: Floats
    start_scale_s: float


class Start:
    """The wait for the estimated start, in units of `start_scale_s`."""

    name: ClassVar[str] = "start"

    @staticmethod
    def of(room: Room) -> Floats:
        return room.waits_s / room.start_scale_s


class Price:
    """The price relative to the lowest: 0.5 is half as much again. Next to a free cluster, relative to the highest."""

    name: ClassVar[str] = "price"

    @staticmethod
    def of(terms: Terms) -> Floats:
        low = terms.rates.min()
        part: Floats = (terms.rates - low) / (low or terms.rates.max() or 1.0)
        return part


class Speed:
    """How much longer than on the fastest cluster a job may run, at most 1. Not measured counts as half as fast."""

    name: ClassVar[str] = "speed"

    @staticmethod
    def of(terms: Terms) -> Floats:
        fastest = terms.speeds.max()
        if not fastest:
            return np.zeros(len(terms.speeds))
        speeds = np.where(terms.speeds > 0, terms.speeds, fastest / 2)
        part: Floats = np.minimum(1.0, fastest / speeds - 1.0)
        return part


class Reliability:
    """The estimated chance that the provider does not serve the job."""

    name: ClassVar[str] = "reliability"

    @staticmethod
    def of(terms: Terms) -> Floats:
        return 1.0 - terms.reliabilities


class Spread:
    """The load: jobs go to clusters with more room, and a cluster's failure ends fewer of them."""

    name: ClassVar[str] = "spread"

    @staticmethod
    def of(room: Room) -> Floats:
        return room.loads


FIXED = (Price, Speed, Reliability)
MOVING = (Start, Spread)


def fixed(terms: Terms, weights: Weights) -> Floats:
    """The weighted sum of the parts that stay the same during a round."""
    result = np.zeros(len(terms.rates))
    for part in FIXED:
        if weight := getattr(weights, part.name):
            result += weight * part.of(terms)
    return result


def moving(room: Room, weights: Weights) -> Floats:
    """The weighted sum of the parts that change as a round fills clusters."""
    result = np.zeros(len(room.waits_s))
    for part in MOVING:
        if weight := getattr(weights, part.name):
            result += weight * part.of(room)
    return result


def preferring(weights: Weights, prefer: Prefer) -> Weights:
    """The weights for a job whose customer prefers something."""
    if prefer is Prefer.PRICE:
        return replace(weights, price=PREFERRED * weights.price)
    if prefer is Prefer.START:
        return replace(weights, start=PREFERRED * weights.start)
    if prefer is Prefer.SPEED:
        return replace(weights, speed=PREFERRED * weights.speed)
    return weights
