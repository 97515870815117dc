"""The metrics of a supervisor, read from the registry that it serves."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric

from deepgrid.lifecycle.states import JobStatus
from deepgrid.observability.metrics import Metrics
from tools.site import tables


def families() -> Iterator[Metric]:
    """Yield every metric of this project. The metrics of the process itself are Prometheus's own."""
    metrics = Metrics()
    metrics.spooled([])
    for status in JobStatus:
        if not status.hot:
            metrics.settled(status, None)  # a label has no values before its first
    for family in sorted(metrics.registry.collect(), key=lambda one: one.name):
        if family.name.startswith("deepgrid_"):
            yield family


def query_name(family: Metric) -> str:
    """Return the name as a query writes it."""
    return family.name + ("_total" if family.type == "counter" else "")


def table() -> str:
    """Return a row per metric."""
    rows = [(f"`{query_name(one)}`", one.type, _labels(one), tables.prose(one.documentation)) for one in families()]
    return tables.table(("metric", "type", "labels", "means"), rows)


def _labels(family: Metric) -> str:
    values: dict[str, list[str]] = {}
    for sample in family.samples:
        for label, value in sample.labels.items():
            if label != "le" and value not in values.setdefault(label, []):
                values[label].append(value)
    return "; ".join(f"`{label}`: {', '.join(found)}" for label, found in values.items())
