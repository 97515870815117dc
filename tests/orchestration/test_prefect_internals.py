"""The undocumented parts of Prefect that this project uses, on a real server. `test_worker.py` has the rest.

`./run test --prefect VERSION` runs this folder on another release of Prefect.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from prefect import flow, task
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.server.schemas.schedules import CronSchedule
from prefect.states import Completed, Suspended

from orchestration import prefect_internals
from orchestration.prefect_internals import as_task, delete_runs, drain_queues
from orchestration.worker import InProcessWorker
from tests.orchestration.pool import create, end_of, hold, until

pytestmark = pytest.mark.timeout(300)


async def test_a_suspended_run_goes_on_and_reports_its_end(client: PrefectClient, worker: InProcessWorker) -> None:
    hold.append(asyncio.Event())
    try:
        run = await until(client, await create(client, "run_job"), lambda r: r.state_name == "Running")
        await client.set_flow_run_state(run.id, Suspended(), force=True)
        assert worker.carries(run.id)
        hold[0].set()
        assert (await end_of(client, run))[0] == "Completed"
    finally:
        hold.clear()


async def test_many_runs_are_deleted_by_one_request(client: PrefectClient) -> None:
    runs = [await create(client, "counts", number=n) for n in range(3)]
    for run in runs:
        await client.set_flow_run_state(run.id, Completed(), force=True)
    wanted = FlowRunFilter(id=FlowRunFilterId(any_=[run.id for run in runs[:2]]))
    assert await delete_runs(client, wanted) == 2
    assert await client.read_flow_runs(flow_run_filter=wanted) == []
    assert (await client.read_flow_run(runs[2].id)).state_name == "Completed"


@task(task_run_name="{name}")
async def named(name: str, value: object = None) -> object:
    return value or [name]


@flow(persist_result=False)
async def steps_in_order() -> None:
    await as_task(named, "first")
    await asyncio.gather(as_task(named, "left"), as_task(named, "right"))
    await as_task(named, "last", await as_task(named, "next"))


async def test_the_diagram_connects_the_steps_of_a_run_in_their_order(client: PrefectClient) -> None:
    """Tasks that exchange no values were boxes without arrows."""
    for _ in range(2):  # the first task of a run does not follow the last one of the run before
        state = await steps_in_order(return_state=True)
    nodes: dict[str, list[str]] = {}
    async with asyncio.timeout(60):
        while len(nodes) < 5:
            await asyncio.sleep(0.2)
            answer = await client.request("GET", f"/flow_runs/{state.state_details.flow_run_id}/graph-v2")
            found = dict(answer.json()["nodes"])
            labels = {id: node["label"] for id, node in found.items()}
            nodes = {node["label"]: [labels.get(one["id"], "?") for one in node["parents"]] for node in found.values()}
    assert nodes == {"first": [], "left": ["first"], "right": ["first"], "next": ["first"], "last": ["next"]}


@flow(persist_result=False)
async def short_and_long_step() -> None:
    await as_task(named, "short")
    await as_task(waiting, "long")


@task(task_run_name="{name}")
async def waiting(name: str) -> None:
    await asyncio.sleep(0.5)


async def test_a_short_step_has_one_event_with_the_time_of_its_start(
    client: PrefectClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prefect_internals, "SHORT_TASK_S", 0.3)
    run_id = (await short_and_long_step(return_state=True)).state_details.flow_run_id
    assert run_id is not None
    of_run = FlowRunFilter(id=FlowRunFilterId(any_=[run_id]))
    async with asyncio.timeout(60):
        while len(found := await client.read_task_runs(flow_run_filter=of_run)) < 2 or any(
            one.state_name != "Completed" for one in found
        ):
            await asyncio.sleep(0.2)
    runs = {one.name: one for one in found}
    states = {name: [one.name for one in await client.read_task_run_states(run.id)] for name, run in runs.items()}
    assert {name: sorted(names) for name, names in states.items()} == {
        "short": ["Completed"],
        "long": ["Completed", "Running"],
    }
    for run in runs.values():
        assert run.start_time is not None and run.end_time is not None and run.run_count == 1
        assert run.total_run_time == run.end_time - run.start_time


def test_the_queues_of_a_process_drain_in_time() -> None:
    drain_queues(timeout_s=0.1)


async def test_the_servers_scheduler_knows_cron() -> None:
    """A release of Prefect whose scheduler fails on this Python would run no flow on schedule, and only log that."""
    first, second = await CronSchedule(cron="*/10 * * * *").get_dates(n=2)
    assert second - first == timedelta(minutes=10)
