"""`./run bench restart [JOBS]`: compares restarts of a supervisor while jobs wait, and without jobs.

Measured from SIGTERM: the process's end, the first answer of the new one that it carries all jobs, and the end of its
run of `register_provider`. Meanwhile it polls how many runs of jobs Prefect shows as Running. "Shown" is the moment
when it shows all of them.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import astuple, dataclass
from typing import Self

import httpx
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.table import Table

from tests.bench.whole_grid import PATIENCE_S, MeasuredGrid, measured_grid

CLUSTER = "alpha"
SUPERVISOR = f"supervisor-{CLUSTER}"
JOBS = 1_000
POLL_S = 0.5


@dataclass
class Restart:
    """Seconds from SIGTERM, and the largest number of jobs' runs that Prefect did not show as Running."""

    jobs: int
    ended_s: float
    carried_s: float
    shown_s: float
    registered_s: float
    not_running: int


class Watched:
    """Prefect and the supervisor's metrics, seen from outside."""

    def __init__(self, here: MeasuredGrid) -> None:
        prefect, port = here.grid.prefect, here.grid.ports.port(SUPERVISOR)
        login = httpx.BasicAuth(*prefect.login().split(":"))
        self._api = httpx.AsyncClient(
            base_url=f"{prefect.ui_url}/api/",
            auth=login,
            trust_env=False,
            timeout=120,
        )
        self._metrics = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=120)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._api.aclose()
        await self._metrics.aclose()

    async def carried(self) -> int:
        """Return how many jobs the supervisor carries; 0 while it is away."""
        try:
            text = (await self._metrics.get("/metrics")).raise_for_status().text
        except httpx.HTTPError:
            return 0
        families = {family.name: family for family in text_string_to_metric_families(text)}
        return int(families["deepgrid_carriers"].samples[0].value)

    async def shown(self) -> int:
        """Return how many runs of jobs Prefect shows as Running."""
        return await self._count("run_job", {"type": {"any_": ["RUNNING"]}})

    async def registrations(self) -> int:
        """Return how many runs of `register_provider` completed."""
        return await self._count("register_provider", {"type": {"any_": ["COMPLETED"]}})

    async def _count(self, flow: str, state: dict[str, object]) -> int:
        body = {
            "flows": {"name": {"any_": [flow]}},
            "flow_runs": {"state": state},
            "deployments": {"name": {"any_": [CLUSTER]}},
        }
        return int((await self._api.post("flow_runs/count", json=body)).raise_for_status().json())


async def restart(here: MeasuredGrid, watched: Watched, jobs: int) -> Restart:
    """Restart the supervisor, which carries `jobs` jobs."""
    registered = await watched.registrations()
    began = time.monotonic()
    await asyncio.to_thread(here.grid.table.stop, SUPERVISOR)
    ended_s = time.monotonic() - began
    carried_s: float | None = None
    shown_s: float | None = None
    registered_s: float | None = None
    not_running = 0
    starting = asyncio.create_task(asyncio.to_thread(here.grid.start, SUPERVISOR))
    while carried_s is None or shown_s is None or registered_s is None or not starting.done():
        missing = jobs - await watched.shown()
        not_running = max(not_running, missing)
        after_s = time.monotonic() - began
        assert after_s < PATIENCE_S, f"{carried_s=} {shown_s=} {registered_s=} {missing=}"
        if carried_s is None and await watched.carried() >= jobs and starting.done():
            carried_s = after_s
        if registered_s is None and await watched.registrations() > registered:
            registered_s = after_s
        if missing:
            shown_s = None  # it begins again
        elif shown_s is None:
            shown_s = after_s
        await asyncio.sleep(POLL_S)
    await starting
    return Restart(jobs, ended_s, carried_s, shown_s, registered_s, not_running)


async def measure(jobs: int) -> None:
    async with measured_grid(CLUSTER) as here, Watched(here) as watched:
        empty = await restart(here, watched, 0)
        with here.no_nodes():
            await here.order("true", jobs)
            await here.until_slurm(lambda count: count >= jobs, "-t", "PD")
            while await watched.shown() < jobs:
                await asyncio.sleep(POLL_S)
            full = await restart(here, watched, jobs)
    table = Table(
        "jobs", "ended", "carried", "shown as Running", "registered", "not Running", title="Seconds from SIGTERM"
    )
    for one in (empty, full):
        table.add_row(*(f"{value:.1f}" if isinstance(value, float) else str(value) for value in astuple(one)))
    Console(width=100).print(table)
    figures = {
        "bench": "restart", "ratio": round(full.registered_s / empty.registered_s, 2), "jobs": jobs,
        "ended_s": round(full.ended_s, 1), "carried_s": round(full.carried_s, 1), "shown_s": round(full.shown_s, 1),
        "registered_s": round(full.registered_s, 1), "not_running": full.not_running,
    }  # fmt: skip
    print(json.dumps(figures))


if __name__ == "__main__":
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else JOBS))
