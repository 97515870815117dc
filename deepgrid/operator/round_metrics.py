"""Prometheus metrics of the operator. Counting happens in memory."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from deepgrid.errors import ChainError

ERROR_BUCKETS_S = (-3600, -900, -300, -120, -60, -30, -10, 0, 10, 30, 60, 120, 300, 900, 3600)
ROUND_BUCKETS_S = (0.1, 0.3, 1, 2, 5, 10, 30, 60, 120, 300)


class RoundMetrics:
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
        self._rpc = Counter("deepgrid_operator_rpc_calls", "Requests to the chain's node.", registry=registry)
        self.errors_s: list[int] = []  # of the starts since the last round
        ProcessCollector(registry=registry)

    def asked(self, requests: int, error: ChainError | None) -> None:
        """Count a batch of requests to the chain's node."""
        self._rpc.inc(requests)

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
