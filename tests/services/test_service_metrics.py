"""The services' metrics count requests by route pattern, and the page of metrics explains each metric."""

from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path

import httpx
import pytest
from prometheus_client import generate_latest

from deepgrid.errors import AccessDenied
from deepgrid.observability.metrics_page import metrics_page
from tests.appending import push_log
from tests.services.support import Grid, a_job, waits
from tests.waiting import until

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
NAME = "0" * 64


def value(grid: Grid, name: str, **labels: str) -> float | None:
    return grid.context.metrics.registry.get_sample_value(name, labels)


async def test_uploads_and_checks_are_counted_by_result(grid: Grid) -> None:
    await grid.customer.upload(a_job())
    with pytest.raises(AccessDenied):
        await grid.provider.upload(a_job())  # holds no credits
    assert value(grid, "deepgrid_services_uploads_total", result="stored") == 1
    assert value(grid, "deepgrid_services_uploads_total", result="refused") == 1
    assert value(grid, "deepgrid_services_refusals_total", reason="forbidden") == 1
    assert value(grid, "deepgrid_services_check_seconds_count") == 1
    assert value(grid, "deepgrid_services_checks_waiting") == 0


async def test_output_and_its_followers_are_counted(grid: Grid) -> None:
    grid.chain.put(1, NAME)
    await push_log(grid.provider, 1, 0, b"hello")
    await push_log(grid.provider, 1, 0, b"hello")  # stored already
    assert value(grid, "deepgrid_services_log_bytes_total") == 5
    reading = asyncio.create_task(grid.customer.read_log(1, 5, wait_s=20))
    await until(lambda: waits(grid, 1))
    assert value(grid, "deepgrid_services_followers") == 1
    assert value(grid, "deepgrid_services_followed_logs") == 1
    await push_log(grid.provider, 1, 5, b"!", final=True)
    assert (await asyncio.wait_for(reading, 60)).data == b"!"
    assert value(grid, "deepgrid_services_answer_seconds_count", route="/v1/jobs/{job_id}/log", status="2xx") == 4


async def test_labels_hold_no_text_of_a_client(grid: Grid) -> None:
    async with httpx.AsyncClient(base_url=grid.url, trust_env=False) as http:
        for path in ("/s3cret", "/v1/jobs/s3cret/log", "/v1/definitions/s3cret/releases"):
            assert (await http.get(path)).status_code >= 400
    assert "s3cret" not in generate_latest(grid.context.metrics.registry).decode().lower()
    assert value(grid, "deepgrid_services_answer_seconds_count", route="other", status="4xx") == 1


async def test_prometheus_reads_every_metric_that_the_page_explains(grid: Grid) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    async with (
        metrics_page(grid.context.metrics.registry, port),
        httpx.AsyncClient(trust_env=False) as http,
    ):
        text = (await http.get(f"http://127.0.0.1:{port}/metrics")).raise_for_status().text
        assert (await http.get(f"{grid.url}/metrics")).status_code == 404  # the public address shows none
    names = {name for name in re.findall(r"^# TYPE (deepgrid_\w+)", text, re.M) if not name.endswith("_created")}
    explained = PAGE.read_text().partition("## Services")[2].partition("\n## ")[0]
    assert names == set(re.findall(r"^\| `(deepgrid_\w+)`", explained, re.M))
