"""Prometheus metrics of the operator. Counting happens in memory.

Values that need a request (gas balance, providers) are set by the code that sent it.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily

from deepgrid.chain.node.node import Block
from deepgrid.lifecycle.job import Job, Provider
from deepgrid.lifecycle.states import JobStatus
from deepgrid.observability.metrics import ChainMetrics, family_of, tally_of

ERROR_BUCKETS_S = (-3600, -900, -300, -120, -60, -30, -10, 0, 10, 30, 60, 120, 300, 900, 3600)
ROUND_BUCKETS_S = (0.1, 0.3, 1, 2, 5, 10, 30, 60, 120, 300)


class OperatorMetrics(ChainMetrics):
    """Counters, gauges and histograms of one operator."""

    def __init__(self) -> None:
        super().__init__("deepgrid_operator", "operator")
        gauge, histogram = partial(Gauge, registry=self.registry), partial(Histogram, registry=self.registry)
        words = "Seconds from the estimated start of a job to its start; negative if it started earlier."
        self._error = histogram("deepgrid_start_estimate_error", words, buckets=ERROR_BUCKETS_S)
        words = "Duration of the matching in a round, in seconds."
        self._round = histogram("deepgrid_round_seconds", words, buckets=ROUND_BUCKETS_S)
        self._assigned = Counter("deepgrid_assigned_jobs", "Jobs assigned by this process.", registry=self.registry)
        self._waiting = gauge("deepgrid_waiting_jobs", "Jobs that the last round left pending.")
        words = "When the last round was matched; 0 for never."
        self._round_at = gauge("deepgrid_operator_last_round_timestamp_seconds", words)
        words = "When the chain was last followed; 0 for never."
        self._block_at = gauge("deepgrid_operator_last_block_timestamp_seconds", words)
        self._providers = gauge("deepgrid_operator_providers", "Providers, in force and others.", ["standing"])
        self.errors_s: list[int] = []  # of the starts since the last round
        self.hot: Callable[[], Iterable[Job]] = tuple  # the hot jobs of the grid; set by the session
        self.saw_providers([])  # make the labels known before their first event
        self.registry.register(self)

    def caught_up(self, head: Block) -> None:
        """Record that the chain was followed up to this block."""
        self._block.set(head.number)
        self._block_at.set_to_current_time()

    def saw_providers(self, providers: Iterable[Provider]) -> None:
        """Record the providers of the grid."""
        providers = list(providers)
        self.offers(providers)
        tally = Tally("in_force" if one.in_force else "other" for one in providers)
        for standing in ("in_force", "other"):
            self._providers.labels(standing).set(tally[standing])

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
        states = tally_of((job.status.words for job in list(self.hot())), (one.words for one in JobStatus if one.hot))
        yield family_of("deepgrid_operator_jobs", "Hot jobs of the grid by state.", "state", states)
        yield self.used(list(self.hot()))
