"""A real Prometheus scrapes all roles of a running grid, and evaluates all alert rules on what it gets."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from deployments.onemachine.clusters import OFFERS
from deployments.onemachine.grid import LocalGrid
from deployments.onemachine.parties.roles import SERVICES_METRICS
from tests.grid.customer import PATIENCE_S, Customer

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deployments" / "monitoring"


@pytest.fixture
async def prometheus(customer: Customer, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A Prometheus with the example of deployments/monitoring, and with the ports of the grid."""
    binary = shutil.which("prometheus") or shutil.which(ROOT / ".grid" / "debian" / "usr" / "bin" / "prometheus")
    if binary is None:
        pytest.skip("prometheus is not there; tools/fetch-debian unpacks it")
    shutil.copy(FOLDER / "alerts.yml", tmp_path)
    (tmp_path / "prometheus.yml").write_text(config(customer.grid))
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    argv = [
        binary, f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(argv, stdout=log, stderr=log) as process:
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/api/v1/", trust_env=False) as client:
                yield client
        finally:
            process.terminate()


def config(grid: LocalGrid) -> str:
    """Return the example with the ports of the grid, and with short intervals."""
    text = (FOLDER / "prometheus.yml").read_text().replace("15s", "1s")
    ports = grid.ports
    supervisors = ", ".join(f'"127.0.0.1:{ports.port(f"supervisor-{offer.name}")}"' for offer in OFFERS)
    for old, new in (
        ('"127.0.0.1:9464"', supervisors),
        ("127.0.0.1:9465", f"127.0.0.1:{ports.port('operator')}"),
        ("127.0.0.1:9466", f"127.0.0.1:{ports.port(SERVICES_METRICS)}"),
    ):
        assert old in text
        text = text.replace(old, new)
    return text


async def test_all_roles_are_scraped_and_no_alert_fires(prometheus: httpx.AsyncClient) -> None:
    deadline = time.monotonic() + PATIENCE_S
    up: list[str] = []
    while len(up) < len(OFFERS) + 2:
        assert time.monotonic() < deadline, up
        await asyncio.sleep(0.5)
        try:
            up = [one["metric"]["job"] for one in await query(prometheus, "up == 1")]
        except httpx.HTTPError:
            continue  # it starts, and answers 503 meanwhile
    assert sorted(set(up)) == ["deepgrid-operator", "deepgrid-services", "deepgrid-supervisor"]
    assert {one["metric"]["job"] for one in await query(prometheus, '{__name__=~"deepgrid_.+"}')} == set(up)
    rules: list[dict[str, str]] = []
    while not rules or any(rule["health"] == "unknown" for rule in rules):
        assert time.monotonic() < deadline, rules
        await asyncio.sleep(0.5)
        groups = (await prometheus.get("rules")).raise_for_status().json()["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"} == {}
    assert [rule["name"] for rule in rules if rule["state"] == "firing"] == []


async def query(prometheus: httpx.AsyncClient, expression: str) -> list[dict[str, dict[str, str]]]:
    answer = await prometheus.get("query", params={"query": expression})
    return list(answer.raise_for_status().json()["data"]["result"])
