"""Start and await runs of deployments over Prefect's API, as its UI does."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from deployments.onemachine.grid import LocalGrid
from tests.grid.customer import PATIENCE_S

Json = dict[str, Any]
OVERLAPPED = "Deployment concurrency limit reached."
FINAL = ("COMPLETED", "FAILED", "CANCELLED", "CRASHED")


def api(grid: LocalGrid) -> httpx.AsyncClient:
    """Prefect's API of this grid."""
    prefect = grid.prefect
    login = httpx.BasicAuth(*prefect.login().split(":"))
    return httpx.AsyncClient(
        base_url=f"{prefect.ui_url}/api/",
        auth=login,
        trust_env=False,
        timeout=60,
    )


async def deployment(grid: LocalGrid, name: str) -> Json:
    """Return the deployment `flow/name`."""
    async with api(grid) as client:
        return dict((await client.get(f"deployments/name/{name}")).raise_for_status().json())


async def run_now(grid: LocalGrid, name: str, **parameters: object) -> Json:
    """Start a run of the deployment `flow/name` and wait for its end; `result["state"]` has type and message.

    A deployment with a concurrency limit may cancel it because of a run that an event or a schedule started.
    Then it is started once more.
    """
    return await run_now_until(grid, name, lambda run: run["state"]["type"] in FINAL, **parameters)


async def run_now_until(grid: LocalGrid, name: str, reached: Callable[[Json], bool], **parameters: object) -> Json:
    """Do the same, and wait until `reached` is true for the run."""
    found = await deployment(grid, name)
    wanted = {"parameters": parameters, "state": {"type": "SCHEDULED"}}
    path = f"deployments/{found['id']}/create_flow_run"
    deadline = time.monotonic() + PATIENCE_S
    while True:
        async with api(grid) as client:
            run = (await client.post(path, json=wanted)).raise_for_status().json()
        run = await run_until(grid, run["id"], reached)
        if run["state"]["message"] != OVERLAPPED or time.monotonic() > deadline:
            return run


async def run_until(grid: LocalGrid, run_id: str, reached: Callable[[Json], bool]) -> Json:
    """Wait until `reached` is true for the run, and return the run."""
    deadline = time.monotonic() + PATIENCE_S
    async with api(grid) as client:
        while not reached(run := (await client.get(f"flow_runs/{run_id}")).raise_for_status().json()):
            assert time.monotonic() < deadline, f"the run {run['name']} is still {run['state']}"
            await asyncio.sleep(0.5)
    return dict(run)


async def tasks_of(grid: LocalGrid, run_id: str, *named: str) -> list[tuple[str, list[str]]]:
    """Return the states of each task of the run, after all have ended.

    Prefect records tasks some time after the run. So this waits for a task with each of the `named` prefixes.
    """
    wanted = {"flow_runs": {"id": {"any_": [run_id]}}}
    deadline = time.monotonic() + PATIENCE_S
    async with api(grid) as client:
        while True:
            tasks = (await client.post("task_runs/filter", json=wanted)).raise_for_status().json()
            ended = all(task["state_type"] in FINAL for task in tasks)
            if ended and all(any(task["name"].startswith(one) for task in tasks) for one in named):
                break
            assert time.monotonic() < deadline, tasks
            await asyncio.sleep(0.5)
        histories = []
        for task in tasks:
            states = (await client.get(f"task_run_states/?task_run_id={task['id']}")).raise_for_status().json()
            histories.append((task["name"], [state["name"] for state in states]))
    return histories


@dataclass(frozen=True)
class Told:
    """What Prefect shows of a run: its log, its table, and its diagram. `parents` and `labels` are names of tasks."""

    lines: list[str]
    card: dict[str, str]
    parents: dict[str, list[str]]
    labels: list[str]


async def told_of(grid: LocalGrid, run_id: str, lines: int) -> Told:
    """Return what Prefect shows of a run, once its log has this many lines."""
    of_run = {"any_": [run_id]}
    deadline = time.monotonic() + PATIENCE_S
    async with api(grid) as client:
        while True:
            wanted: Json = {"logs": {"flow_run_id": of_run}, "sort": "TIMESTAMP_ASC"}
            log = (await client.post("logs/filter", json=wanted)).raise_for_status().json()
            if len(log) >= lines:
                break
            assert time.monotonic() < deadline, log
            await asyncio.sleep(0.5)
        wanted = {"artifacts": {"flow_run_id": of_run}}
        [table] = (await client.post("artifacts/filter", json=wanted)).raise_for_status().json()
        graph = (await client.get(f"flow_runs/{run_id}/graph-v2")).raise_for_status().json()
    labels = {id: node["label"] for id, node in graph["nodes"]}
    parents = {node["label"]: [labels[one["id"]] for one in node["parents"]] for _, node in graph["nodes"]}
    card = {row["what"]: row["value"] for row in json.loads(table["data"])}
    return Told([line["message"] for line in log], card, parents, list(parents))


async def runs_of(grid: LocalGrid, name: str, *types: str) -> list[Json]:
    """Return the runs of the deployment `flow/name`, newest first, in these state types or in all."""
    found = await deployment(grid, name)
    wanted: Json = {"deployments": {"id": {"any_": [found["id"]]}}, "sort": "START_TIME_DESC"}
    if types:
        wanted["flow_runs"] = {"state": {"type": {"any_": list(types)}}}
    async with api(grid) as client:
        return list((await client.post("flow_runs/filter", json=wanted)).raise_for_status().json())


@asynccontextmanager
async def unscheduled(grid: LocalGrid, *names: str) -> AsyncIterator[None]:
    """Pause the schedules of these deployments, and wait until no run of theirs is active."""
    switched = [schedule for name in names for schedule in await _switch(grid, name, active=False)]
    for name in names:
        await none_under_way(grid, name)
    try:
        yield
    finally:
        async with api(grid) as client:
            for path in switched:
                (await client.patch(path, json={"active": True})).raise_for_status()


async def none_under_way(grid: LocalGrid, name: str) -> None:
    """Wait for the end of the deployment's runs that have begun, or that a person or an event started."""
    for run in await runs_of(grid, name, "SCHEDULED", "PENDING", "RUNNING"):
        if run["state_type"] != "SCHEDULED" or not run["auto_scheduled"]:
            await run_until(grid, run["id"], lambda run: run["state"]["type"] in FINAL)


async def _switch(grid: LocalGrid, name: str, *, active: bool) -> list[str]:
    """Set all schedules of a deployment active or inactive. Returns the API paths of the schedules that changed."""
    found = await deployment(grid, name)
    paths = [
        f"deployments/{found['id']}/schedules/{one['id']}" for one in found["schedules"] if one["active"] != active
    ]
    async with api(grid) as client:
        for path in paths:
            (await client.patch(path, json={"active": active})).raise_for_status()
    return paths
