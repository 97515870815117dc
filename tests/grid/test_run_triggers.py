"""Each deployment with a schedule runs by that schedule, some by `prefect deployment run` and the UI's Run button."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import PATIENCE_S
from tests.grid.prefect_ui import browser_page, quick_run
from tests.grid.runs import FINAL, Json, api, deployment, run_until, runs_of, unscheduled
from tests.grid.support import prefect

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

REPOSITORY = Path(__file__).resolve().parents[2]
EVERY_S = 60
ROUND = "meta_schedule/grid"
TRIES = 4
SHORTER = {"benchmark_cluster/alpha": {"programs": ["machine"]}}  # the other benchmarks take minutes


def scheduled() -> list[str]:
    """Return the names of the deployments with a schedule, of the operator and of the cluster alpha."""
    names = []
    for role, owner in (("operator", "grid"), ("provider", "alpha")):
        written = yaml.safe_load((REPOSITORY / "deployments" / role / "prefect.yaml").read_text())
        names += [f"{one['flow_name']}/{owner}" for one in written["deployments"] if one.get("schedules")]
    return names


NAMES = scheduled()
# One of the operator, one of the cluster: Prefect starts all runs alike. Other tests start the rest over its API.
FEW = [NAMES[0], NAMES[-1]]


@pytest.fixture
async def quiet(grid: LocalGrid) -> AsyncIterator[None]:
    """Pause the schedules of these deployments, and set parameters that make their runs short."""
    before = {name: (await deployment(grid, name))["parameters"] for name in NAMES if name in SHORTER}
    async with unscheduled(grid, *NAMES):
        for name, parameters in before.items():
            await _set_parameters(grid, name, {**parameters, **SHORTER[name]})
        try:
            yield
        finally:
            for name, parameters in before.items():
                await _set_parameters(grid, name, parameters)


@pytest.mark.parametrize("names", [FEW, pytest.param(NAMES, marks=pytest.mark.deep)], ids=["few", "all"])
async def test_flows_run_by_their_schedules(grid: LocalGrid, quiet: None, names: list[str]) -> None:
    runs = await asyncio.gather(*(_scheduled_run(grid, name) for name in names))
    bad = {name: run["state"] for name, run in zip(names, runs, strict=True) if not ended_well(name, run)}
    assert not bad, bad


@pytest.mark.deep
async def test_flows_run_by_the_command(grid: LocalGrid, quiet: None) -> None:
    async def start(name: str) -> str:
        said = await asyncio.to_thread(prefect, grid, "deployment", "run", name)
        found = re.search(r"UUID: ([0-9a-f-]{36})", said)
        assert found, said
        return found[1]

    await all_end_well(grid, start)


@pytest.mark.deep
async def test_flows_run_by_the_run_button(grid: LocalGrid, quiet: None) -> None:
    async with browser_page(grid.prefect) as page:

        async def start(name: str) -> str:
            found = await deployment(grid, name)
            before = {run["id"] for run in await runs_of(grid, name)}
            deployment_page = f"{grid.prefect.ui_url}/deployments/deployment/{found['id']}"
            await quick_run(page, deployment_page, asks=bool(found["parameter_openapi_schema"].get("required")))
            return await _new_run(grid, name, before)

        await all_end_well(grid, start)


async def test_rounds_that_start_together_are_one_round(grid: LocalGrid, quiet: None) -> None:
    """Prefect skips all except one."""
    made = await asyncio.gather(*(run_now_once(grid, ROUND) for _ in range(3)))
    assert "COMPLETED" in {run["state"]["type"] for run in made}
    done = sorted((run["start_time"], run["end_time"]) for run in await runs_of(grid, ROUND, "COMPLETED"))
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(done))


async def run_now_once(grid: LocalGrid, name: str) -> Json:
    """Start a run of a deployment, and wait for its end. It may have been skipped."""
    found = await deployment(grid, name)
    async with api(grid) as client:
        wanted = {"state": {"type": "SCHEDULED"}}
        made = (await client.post(f"deployments/{found['id']}/create_flow_run", json=wanted)).raise_for_status()
    return await run_until(grid, made.json()["id"], _is_final)


async def all_end_well(grid: LocalGrid, start: Callable[[str], Awaitable[str]]) -> None:
    """Start runs of some deployments and wait for all. Repeat runs that Prefect cancels for another one."""
    left = FEW
    for _ in range(TRIES):
        started = {name: await start(name) for name in left}
        runs = {name: await run_until(grid, run_id, _is_final) for name, run_id in started.items()}
        left = [name for name, run in runs.items() if run["state"]["type"] == "CANCELLED"]
        bad = {n: run["state"] for n, run in runs.items() if n not in left and not ended_well(n, run)}
        assert not bad, bad
        if not left:
            return
    pytest.fail(f"cancelled {TRIES} times: {left}")


def ended_well(name: str, run: Json) -> bool:
    """Return whether a run ended as expected.

    `reconcile_billing` may find differences, because other tests leave wrong bills.
    """
    state = run["state"]
    if name.startswith("reconcile_billing") and state["type"] == "FAILED":
        return bool(state["message"]) and "exception" not in state["message"]
    return bool(state["type"] == "COMPLETED")


async def _scheduled_run(grid: LocalGrid, name: str) -> Json:
    """Add a schedule, wait until one of its runs ends without being skipped, and remove the schedule."""
    begun = datetime.now(UTC)
    often = {"interval": EVERY_S, "anchor_date": (begun + timedelta(seconds=10)).isoformat()}
    path = f"deployments/{(await deployment(grid, name))['id']}/schedules"
    async with api(grid) as client:
        added = (await client.post(path, json=[{"active": True, "schedule": often}])).raise_for_status().json()
        try:
            return await _ended_since(grid, name, begun.isoformat())
        finally:
            (await client.delete(f"{path}/{added[0]['id']}")).raise_for_status()


async def _ended_since(grid: LocalGrid, name: str, begun: str) -> Json:
    deadline = time.monotonic() + 2 * PATIENCE_S
    while True:
        for run in await runs_of(grid, name, "COMPLETED", "FAILED", "CRASHED"):
            if run["auto_scheduled"] and run["end_time"] >= begun:
                return run
        assert time.monotonic() < deadline, f"no scheduled run of {name} ends"
        await asyncio.sleep(1)


async def _new_run(grid: LocalGrid, name: str, before: set[str]) -> str:
    """Wait for a run whose id is not in `before`, and return its id."""
    deadline = time.monotonic() + PATIENCE_S
    while not (new := [run["id"] for run in await runs_of(grid, name) if run["id"] not in before]):
        assert time.monotonic() < deadline, f"the button started no run of {name}"
        await asyncio.sleep(0.3)
    return str(new[0])


async def _set_parameters(grid: LocalGrid, name: str, parameters: Json) -> None:
    async with api(grid) as client:
        path = f"deployments/{(await deployment(grid, name))['id']}"
        (await client.patch(path, json={"parameters": parameters})).raise_for_status()


def _is_final(run: Json) -> bool:
    return run["state"]["type"] in FINAL
