"""Prometheus metrics of one process of the services.

No label holds a text of a client. Routes are the patterns of the service, statuses are classes, reasons a fixed list.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ANSWER_BUCKETS_S = (0.005, 0.01, 0.03, 0.1, 0.3, 1, 2, 5, 10, 30, 60)
CHECK_BUCKETS_S = (0.03, 0.1, 0.3, 0.5, 1, 2, 5, 10, 30)
UPLOAD = ("PUT", "/v1/definitions/{name}")
UPLOAD_RESULTS = ("stored", "refused", "failed")
REASONS = {
    401: "signature", 403: "forbidden", 404: "not_found", 408: "slow", 409: "conflict", 413: "too_large",
    422: "malformed", 425: "too_early", 429: "rate_limit", 503: "unavailable",
}  # fmt: skip
OTHER = "other"
LOAD = {
    "deepgrid_services_checks_running": "Checks of scripts that run now.",
    "deepgrid_services_checks_waiting": "Checks of scripts that wait for a slot.",
    "deepgrid_services_followers": "Readers that wait for the output of a job.",
    "deepgrid_services_followed_logs": "Logs that have such readers.",
    "deepgrid_services_tunnels": "Tunnels into jobs that are open or about to open.",
    "deepgrid_services_database_connections": "Connections to the database in use.",
}


class ServiceMetrics(Collector):
    """Counters and histograms. The values of `LOAD` are read from `load` at each scrape."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.load: Callable[[], Mapping[str, float]] = dict  # set by the service
        counter, histogram = partial(Counter, registry=registry), partial(Histogram, registry=registry)
        words = "Duration of a request by route and class of status; reads of a log include their wait for output."
        name, labels = "deepgrid_services_answer_seconds", ["route", "status"]
        self._answers = histogram(name, words, labels, buckets=ANSWER_BUCKETS_S)
        self._uploads = counter("deepgrid_services_uploads", "Signed uploads of definitions by result.", ["result"])
        self._refusals = counter("deepgrid_services_refusals", "Refused requests by reason.", ["reason"])
        words = "Duration of a check of a definition's script, without its wait."
        self._checks = histogram("deepgrid_services_check_seconds", words, buckets=CHECK_BUCKETS_S)
        words = "Bytes of output that providers sent and this process stored."
        self._log_bytes = counter("deepgrid_services_log_bytes", words)
        for result in UPLOAD_RESULTS:
            self._uploads.labels(result)
        for reason in (*REASONS.values(), OTHER):
            self._refusals.labels(reason)
        ProcessCollector(registry=registry)
        registry.register(self)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Record the answer to a request. `route` is the pattern of its path, empty if there is none."""
        self._answers.labels(route or OTHER, f"{status // 100}xx").observe(seconds)
        if status >= 400:
            self._refusals.labels(REASONS.get(status, OTHER)).inc()
        if (method, route) == UPLOAD:
            self._uploads.labels("stored" if status < 400 else "refused" if status < 500 else "failed").inc()

    def checked(self, seconds: float) -> None:
        """Record a check of a script."""
        self._checks.observe(seconds)

    def stored_output(self, size: int) -> None:
        """Count stored bytes of a log."""
        self._log_bytes.inc(size)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield what is read at each scrape. The registry calls this."""
        values = self.load()
        for name, words in LOAD.items():
            yield GaugeMetricFamily(name, words, value=values.get(name, 0))


class Measured:
    """ASGI middleware: records each answer, including answers of the middleware inside."""

    def __init__(self, app: ASGIApp, metrics: ServiceMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.monotonic(), 500

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, observed)
        finally:
            route = getattr(scope.get("route"), "path", "")
            self._metrics.answered(scope["method"], route, status, time.monotonic() - began)
