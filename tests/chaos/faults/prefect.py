"""Faults of Prefect: its server or database is down, or a person cancels and retries runs.

Each may happen at any stage of the jobs. The round draws the stage.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import httpx

from tests.chaos.fault import Fault
from tests.chaos.round import pause
from tests.chaos.world import World

PRESS_EVERY_S = 1.0
SHORTLY_S, LONG_S = 3.0, 25.0  # a supervisor carries jobs without Prefect after about ten seconds
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "CRASHED")
CANCELLING = {"state": {"type": "CANCELLING", "name": "Cancelling"}, "force": True}
RETRYING = {"state": {"type": "SCHEDULED", "name": "AwaitingRetry"}, "force": True}


@asynccontextmanager
async def server_down(most_s: float, world: World, rng: random.Random) -> AsyncIterator[None]:
    """Prefect's server is killed and started again."""
    await asyncio.to_thread(world.grid.kill, "prefect-server")
    try:
        yield
        await pause(rng, most_s)
    finally:
        await asyncio.to_thread(world.grid.start, "prefect")


@asynccontextmanager
async def database_restarted(most_s: float, world: World, rng: random.Random) -> AsyncIterator[None]:
    """PostgreSQL ends all sessions of Prefect and of the services, and restarts."""
    await asyncio.to_thread(world.grid.table.stop, "postgres")
    try:
        await pause(rng, most_s)
    finally:
        await asyncio.to_thread(world.grid.start, "postgres")
    yield


@asynccontextmanager
async def server_down_at_start(most_s: float, world: World, rng: random.Random) -> AsyncIterator[None]:
    """Supervisor and Prefect die together. The supervisor starts first."""
    await asyncio.to_thread(world.grid.kill, "prefect-server")
    await world.supervisor.kill()
    try:
        world.supervisor.start()
        yield
        await pause(rng, most_s)
    finally:
        await asyncio.to_thread(world.grid.start, "prefect")
        world.supervisor.start()


@asynccontextmanager
async def runs_changed(
    states: Sequence[str], change: dict[str, Any], most_s: float, world: World, rng: random.Random
) -> AsyncIterator[None]:
    """A person presses the button of every second run in the UI for a while."""
    pressing = asyncio.create_task(_press(world, rng, states, change))
    try:
        yield
        await pause(rng, most_s)
    finally:
        pressing.cancel()
        await asyncio.gather(pressing, return_exceptions=True)
    if pressing.done() and not pressing.cancelled() and (error := pressing.exception()):
        raise error


async def _press(world: World, rng: random.Random, states: Sequence[str], change: dict[str, Any]) -> None:
    prefect = world.grid.prefect
    url = f"{prefect.ui_url}/api/"
    login = httpx.BasicAuth(*prefect.login().split(":"))
    async with httpx.AsyncClient(base_url=url, auth=login, trust_env=False, timeout=30) as client:
        wanted = {
            "flow_runs": {"state": {"type": {"any_": list(states)}}},
            "flows": {"name": {"any_": ["run_job"]}},
            "work_pools": {"name": {"any_": [f"provider-{world.cluster}"]}},
            "sort": "EXPECTED_START_TIME_DESC",
            "limit": 50,
        }
        while True:
            with suppress(httpx.TransportError):
                answer = await client.post("flow_runs/filter", json=wanted)
                found = [] if answer.is_server_error else answer.raise_for_status().json()
                for run in found:
                    if rng.random() < 0.5:
                        await client.post(f"flow_runs/{run['id']}/set_state", json=change)
            await asyncio.sleep(PRESS_EVERY_S)


STOPPED = partial(runs_changed, ("SCHEDULED", "PENDING", "RUNNING"), CANCELLING)
RETRIED = partial(runs_changed, ENDED, RETRYING)

FAULTS = [
    Fault("Prefect killed", partial(server_down, SHORTLY_S)),
    Fault("Prefect down", partial(server_down, LONG_S)),
    Fault("PostgreSQL restarted", partial(database_restarted, 0)),
    Fault("PostgreSQL down", partial(database_restarted, LONG_S)),
    Fault("Prefect down at the supervisor's start", partial(server_down_at_start, LONG_S)),
    Fault("runs cancelled by hand", partial(STOPPED, SHORTLY_S)),
    Fault("runs cancelled by hand again and again", partial(STOPPED, LONG_S)),
    Fault("runs retried by hand", partial(RETRIED, SHORTLY_S)),
]
