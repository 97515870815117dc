"""Prometheus metrics of the operator. Counting happens in memory.

Values that need a request (gas balance, providers) are set by the code that sent it.
"""

from __future__ import annotations

import math
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from deepgrid.chain.node.node import Block
from deepgrid.errors import ChainError
from deepgrid.lifecycle.job import Job, Provider
from deepgrid.lifecycle.states import JobStatus
from deepgrid.observability.metrics import WEI_PER_COIN, RpcCounters

ERROR_BUCKETS_S = (-3600, -900, -300, -120, -60, -30, -10, 0, 10, 30, 60, 120, 300, 900, 3600)
ROUND_BUCKETS_S = (0.1, 0.3, 1, 2, 5, 10, 30, 60, 120, 300)


class OperatorMetrics(Collector):
    """Counters, gauges and histograms of one operator."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._error = Histogram(
            "deepgrid_start_estimate_error",
            "Seconds from the estimated start of a job to its start; negative if it started earlier.",
            buckets=ERROR_BUCKETS_S, registry=registry,
        )  # fmt: skip
        self._round = Histogram(
            "deepgrid_round_seconds", "Duration of the matching in a round, in seconds.",
            buckets=ROUND_BUCKETS_S, registry=registry,
        )  # fmt: skip
        self._assigned = Counter("deepgrid_assigned_jobs", "Jobs assigned by this process.", registry=registry)
        self._waiting = Gauge("deepgrid_waiting_jobs", "Jobs that the last round left pending.", registry=registry)
        self._rpc = RpcCounters("deepgrid_operator", registry)
        self._round_at = Gauge(
            "deepgrid_operator_last_round_timestamp_seconds", "When the last round was matched; 0 for never.",
            registry=registry,
        )  # fmt: skip
        self._block = Gauge("deepgrid_operator_block", "Block up to which the chain was followed.", registry=registry)
        self._block_at = Gauge(
            "deepgrid_operator_last_block_timestamp_seconds", "When the chain was last followed; 0 for never.",
            registry=registry,
        )  # fmt: skip
        self._providers = Gauge(
            "deepgrid_operator_providers", "Providers, in force and others.", ["standing"], registry=registry
        )
        self._gas = Gauge(
            "deepgrid_operator_gas_coins", "Gas money of the operator in coins of 10^18 wei, as a float.",
            registry=registry,
        )  # fmt: skip
        self._gas.set(math.nan)  # not read yet: 0 would raise an alert
        self.errors_s: list[int] = []  # of the starts since the last round
        self.hot: Callable[[], Iterable[Job]] = tuple  # the hot jobs of the grid; set by the session
        self.saw_providers([])  # make the labels known before their first event
        ProcessCollector(registry=registry)
        registry.register(self)

    def asked(self, requests: int, error: ChainError | None) -> None:
        """Count a batch of requests to the chain's node, and its error. A revert by a contract is an answer."""
        self._rpc.asked(requests, error)

    def caught_up(self, head: Block) -> None:
        """Record that the chain was followed up to this block."""
        self._block.set(head.number)
        self._block_at.set_to_current_time()

    def saw_providers(self, providers: Iterable[Provider]) -> None:
        """Record the providers of the grid."""
        tally = Tally("in_force" if one.in_force else "other" for one in providers)
        for standing in ("in_force", "other"):
            self._providers.labels(standing).set(tally[standing])

    def set_gas_balance(self, wei: int) -> None:
        """Record the operator's gas balance."""
        self._gas.set(wei / WEI_PER_COIN)

    def started(self, error_s: int) -> None:
        """Record that a job started this much later than estimated."""
        self._error.observe(error_s)
        self.errors_s.append(error_s)

    def assigned(self, jobs: int) -> None:
        """Record that jobs were assigned."""
        self._assigned.inc(jobs)

    def decided(self, waiting: int, seconds: float) -> None:
        """Record a round."""
        self._waiting.set(waiting)
        self._round.observe(seconds)
        self._round_at.set(time.time())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield what is counted at each scrape. The registry calls this."""
        tally = Tally(job.status for job in list(self.hot()))
        family = GaugeMetricFamily("deepgrid_operator_jobs", "Hot jobs of the grid by state.", labels=["state"])
        for status in JobStatus:
            if status.hot:
                family.add_metric([status.words], tally[status])
        yield family
