"""The page of metrics explains the operator's metrics, which Prometheus scrapes."""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from deepgrid.observability.metrics_page import metrics_page
from deepgrid.operator.operator_metrics import OperatorMetrics

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


@dataclass
class Served:
    """The part of a session that the metrics need."""

    metrics_port: int
    metrics: OperatorMetrics = field(default_factory=OperatorMetrics)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    one = Served(port)
    async with metrics_page(one.metrics.registry, port):
        yield one


async def test_prometheus_reads_every_metric_that_the_page_explains(served: Served) -> None:
    served.metrics.started(7)
    served.metrics.assigned(3)
    async with httpx.AsyncClient(trust_env=False) as http:
        text = (await http.get(f"http://127.0.0.1:{served.metrics_port}/metrics")).raise_for_status().text
    assert 'deepgrid_start_estimate_error_bucket{le="10.0"} 1.0' in text
    assert "deepgrid_assigned_jobs_total 3.0" in text
    names = {name for name in re.findall(r"^# TYPE (deepgrid_\w+)", text, re.M) if not name.endswith("_created")}
    explained = PAGE.read_text().partition("## Operator")[2].partition("\n## ")[0]
    assert names == set(re.findall(r"^\| `(deepgrid_\w+)`", explained, re.M))
