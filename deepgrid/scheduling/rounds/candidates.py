"""Finds the clusters that can take a job: by nodes, labels and price. Jobs that ask for the same share the answer.

`Board` holds the clusters of a market with their tables. Its tables are kept from round to round while the
hardware, the labels or the prices that they are made of stay the same.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from deepgrid.billing.formulas import MAX_LIMIT_MINUTES
from deepgrid.lifecycle.job import Affinity, Job
from deepgrid.scheduling.fit import Lack, conditions
from deepgrid.scheduling.market import ClusterState
from deepgrid.scheduling.rounds.reasons import Count
from deepgrid.scheduling.speed import kind_of
from deepgrid.scheduling.tables.fits import FitTable, Shape
from deepgrid.scheduling.tables.label_rules import ConditionTable
from deepgrid.scheduling.tables.rates import PriceTable

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Asks = tuple[Shape, tuple[Affinity, ...], str]
"""The part of a job that decides which clusters suit: shape, conditions, kind."""

SLACK = 1e-9  # far above the rounding of floats, far below any difference of prices that matters


@dataclass(slots=True)
class Suitable:
    """The clusters with the nodes and labels for some jobs.

    Arrays have one element for each cluster of the board. So no array has to be copied to select clusters.

    Attributes:
        shape: What the jobs ask of nodes.
        needs: The CPUs, memory (MB) and GPUs of one job.
        suits: The clusters that suit.
        count: How many suit.
        rates: Wei per minute, rounded; infinite where the cluster does not suit.
        dearest: The highest rate of a cluster that suits.
        obstacles: Why the other clusters do not suit, computed for the first job that waits.
        speeds: Measured speed for the jobs' kind, 0 where it is unknown. From here on for one round only.
        fixed: The part of the score that does not change during the round, by preference.
        starts: Estimated starts (unix time), computed for the first job that waits.
        full: Whether no cluster that suits has room soon. A round only fills clusters, so it stays true.
    """

    shape: Shape
    needs: Floats
    suits: Mask
    count: int
    rates: Floats
    dearest: float
    speeds: Floats
    fixed: dict[int, Floats] = field(default_factory=dict)
    starts: Floats | None = None
    full: bool = False
    obstacles: list[Count] | None = None


@dataclass(slots=True)
class Task:
    """A job and the clusters that can take it, now or later.

    `able` marks the `count` clusters that suit, fit the budget, and did not give the job back lately. It is
    `suitable.suits` itself when all of these can take it. `refused` maps addresses to reasons.
    """

    job: Job
    asks: Asks
    suitable: Suitable
    able: Mask
    count: int
    refused: Mapping[str, str]


def asks_of(job: Job) -> Asks:
    """Return the part of a job that decides which clusters suit."""
    one = job.definition
    return Shape.of(one), tuple(conditions(one.uses, one.affinity, one.gpus)), kind_of(one)


def affordable_wei(job: Job) -> int:
    """Return the highest rate at which the credits buy the wanted minutes; -1 when no job ever gets that many."""
    minutes = max(1, job.wishes.min_minutes)
    return job.locked_wei // minutes if minutes <= MAX_LIMIT_MINUTES else -1


class Board:
    """The clusters that accept jobs, ordered by address."""

    def __init__(self) -> None:
        self.states: list[ClusterState] = []
        self.index: dict[str, int] = {}
        self.fits, self.conditions, self.prices = FitTable(()), ConditionTable(()), PriceTable(())
        self._suitable: dict[Asks, Suitable] = {}
        self.known: Mapping[Asks, Suitable] = {}  # of the last round, if the clusters are the same

    def update(self, clusters: Sequence[ClusterState]) -> bool:
        """Take over the clusters of a round. Returns whether hardware, labels or prices changed."""
        accepting = (one for one in clusters if one.provider.in_force)
        self.states = sorted(accepting, key=lambda one: one.provider.address)
        self.index = {one.provider.address: number for number, one in enumerate(self.states)}
        providers = [one.provider for one in self.states]
        before = self.fits, self.conditions, self.prices
        if self.fits.hardware != (hardware := tuple(one.hardware for one in providers)):
            self.fits = FitTable(hardware)
        if self.conditions.labels != (labels := tuple(one.labels for one in providers)):
            self.conditions = ConditionTable(labels)
        if self.prices.prices != (prices := tuple(one.prices for one in providers)):
            self.prices = PriceTable(prices)
        self.fits.rows.next_round()
        self.conditions.rows.next_round()
        changed = before != (self.fits, self.conditions, self.prices)
        self.known, self._suitable = {} if changed else self._suitable, {}
        self.reliabilities = np.array([one.record.value for one in self.states])
        self.raised = np.array([one.raised_at for one in self.states], np.int64)
        self.last_raise = int(self.raised.max(initial=0))
        self.hashes = np.array([_hash(one.provider.address) for one in self.states], np.uint64)
        self._speeds: dict[str, Floats] = {}
        return changed

    def suitable(self, asks: Asks) -> Suitable:
        """Return the clusters with the nodes and labels that are asked for."""
        found = self._suitable.get(asks)
        if found is None:
            known = self.known.get(asks)
            if known is None:
                found = self._find(asks)
            else:
                found = replace(known, speeds=self._speed(asks[2]), fixed={}, starts=None, full=False)
            self._suitable[asks] = found
        return found

    def task(self, job: Job, refused: Mapping[str, str]) -> Task:
        """Return the job with the clusters that can take it: within its credits and its ceiling, and not refusing."""
        asks = asks_of(job)
        suitable = self.suitable(asks)
        limit = affordable_wei(job)
        if job.wishes.max_rate_wei:
            limit = min(limit, job.wishes.max_rate_wei)
        raised = self.has_raised(job)
        if suitable.dearest * (1 + SLACK) < limit and not refused and not raised:
            return Task(job, asks, suitable, suitable.suits, suitable.count, refused)
        able = self.within(limit, suitable)
        if refused:
            able &= ~self.refusing(refused, suitable)
        if raised:
            able &= self.raised < job.submitted_at
        count = int(np.count_nonzero(able))
        return Task(job, asks, suitable, suitable.suits if count == suitable.count else able, count, refused)

    def has_raised(self, job: Job) -> bool:
        """Return whether a price was raised since the request of a job that relies on the prices of that time."""
        return not job.wishes.max_rate_wei and self.last_raise >= job.submitted_at

    def within(self, limit_wei: int, suitable: Suitable) -> Mask:
        """Return which of the suitable clusters cost at most this."""
        return self.prices.at_most(limit_wei, suitable.shape, suitable.rates)

    def refusing(self, refused: Mapping[str, str], suitable: Suitable) -> Mask:
        """Return which of the suitable clusters belong to these providers."""
        of_these = np.zeros(len(self.states), np.bool_)
        of_these[[self.index[one] for one in refused if one in self.index]] = True
        return of_these & suitable.suits

    def best(self, job_id: int, suitable: Suitable, score: Floats) -> int:
        """Return the cluster with the lowest score.

        Ties go to the exactly cheapest, then by a hash of job and cluster.
        """
        lowest = int(score.argmin())
        ties = (score <= score[lowest] + SLACK).nonzero()[0]
        if len(ties) == 1:
            return lowest
        cheapest = ties[self.prices.are_cheapest(suitable.shape, ties, suitable.rates[ties])]
        if len(cheapest) == 1:
            return int(cheapest[0])
        mixed = (self.hashes[cheapest] ^ np.uint64(_hash(str(job_id)))) * np.uint64(0x9E3779B97F4A7C15)
        return int(cheapest[(mixed >> np.uint64(32)).argmin()])

    def _find(self, asks: Asks) -> Suitable:
        shape, wanted, kind = asks
        suits = self.fits.lacks(shape) == int(Lack.NOTHING)
        for condition in wanted:
            if not suits.any():
                break
            suits = suits & self.conditions.met(condition)
        rates = self.prices.rates(shape)
        dearest = float((rates * suits).max(initial=0.0))
        rates = np.where(suits, rates, np.inf)
        needs = np.array([shape.cpus, shape.cpus * shape.mem_per_cpu_mb, shape.gpus], np.float64)
        return Suitable(shape, needs, suits, int(np.count_nonzero(suits)), rates, dearest, self._speed(kind))

    def _speed(self, kind: str) -> Floats:
        if kind not in self._speeds:
            self._speeds[kind] = np.array([one.speed.get(kind, 0.0) for one in self.states], np.float64)
        return self._speeds[kind]


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


MOST_CHECKS = 20_000
"""Comparisons with all clusters in one round: one for the nodes, and one for each condition on labels."""


def too_much(jobs: Sequence[Job], known: Collection[Asks], most: int = MOST_CHECKS) -> set[int]:
    """Return the ids of jobs that are not compared in this round. Customers take turns, each with its oldest jobs
    first.

    What is `known` from the last round needs one comparison. A request of several jobs counts for the oldest one.
    """
    if sum(1 + len(job.definition.uses) + len(job.definition.affinity) for job in jobs) <= most:
        return set()
    requests: dict[Asks, list[Job]] = {}
    for job in sorted(jobs, key=lambda job: (job.submitted_at, job.id)):
        requests.setdefault(asks_of(job), []).append(job)
    spent: Counter[str] = Counter()
    turns = []
    for asks, same in requests.items():
        checks = 1 if asks in known else 1 + len(asks[1])
        spent[same[0].customer] += checks
        turns.append((spent[same[0].customer], checks, same))
    left: set[int] = set()
    for _, checks, same in sorted(turns, key=lambda turn: turn[0]):
        most -= checks
        if most < 0:
            left.update(job.id for job in same)
    return left
