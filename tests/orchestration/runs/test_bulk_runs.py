"""Flow runs that this process creates and starts itself, on a real Prefect server."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import WorkPoolUpdate
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.states import Cancelling

from orchestration.runs import bulk_runs, orphaned_runs
from orchestration.runs.bulk_runs import NewRun
from orchestration.runs.flow_runs import some_at_once
from orchestration.worker import InProcessWorker
from tests.orchestration.pool import POOL, create, final, parents, until, working

pytestmark = pytest.mark.timeout(300)
COUNTS = f"counts/{POOL}"


async def find_or_begin_runs(deployment: str, wanted: list[NewRun]) -> list[FlowRun]:
    """Call the function under test without its cache: tests change the deployments and the pool."""
    return await bulk_runs.find_or_begin_runs(deployment, wanted, cache_s=-1.0)


def some_runs(count: int) -> list[NewRun]:
    return [NewRun(str(uuid4()), f"number {number}", {"number": number}) for number in range(count)]


async def states_of(client: PrefectClient, run: FlowRun) -> list[str]:
    return [state.name or "" for state in await client.read_flow_run_states(run.id)]


async def test_runs_begin_here_at_once(client: PrefectClient, worker: InProcessWorker) -> None:
    parents.clear()
    wanted = some_runs(2 * bulk_runs.BATCH_SIZE + 1)
    runs = await find_or_begin_runs(COUNTS, wanted)
    assert [(run.idempotency_key, run.name, run.parameters) for run in sorted(runs, key=lambda run: run.name)] == [
        (one.key, one.name, one.parameters) for one in sorted(wanted, key=lambda one: one.name)
    ]
    done = [await until(client, run, final) for run in runs]
    assert await states_of(client, done[0]) == ["Running", "Completed"]
    assert {(run.state_name, run.run_count) for run in done} == {("Completed", 1)}
    assert all(run.start_time and run.end_time and run.deployment_id for run in done)
    assert parents == [None] * len(wanted)


async def test_runs_that_are_there_are_found_and_not_begun_again(
    client: PrefectClient, worker: InProcessWorker
) -> None:
    wanted = some_runs(2)
    first = await find_or_begin_runs(COUNTS, wanted[:1])
    async with asyncio.timeout(120):
        again, _ = await asyncio.gather(find_or_begin_runs(COUNTS, wanted), find_or_begin_runs(COUNTS, wanted))
    assert first[0].id in {run.id for run in again}
    done = [await until(client, run, final) for run in again]
    assert [await states_of(client, run) for run in done] == [["Running", "Completed"]] * 2
    late = await find_or_begin_runs(COUNTS, wanted)
    assert {run.state_name for run in late} == {"Completed"}


async def test_a_run_that_another_process_created_is_left_to_that_process(
    client: PrefectClient, worker: InProcessWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as another:
        another.setattr(bulk_runs, "THIS_PROCESS", uuid4())
        another.setattr(worker, "begin", lambda run: None)  # the other process died before that
        wanted = some_runs(1)
        [left] = await find_or_begin_runs(COUNTS, wanted)
    [found] = await find_or_begin_runs(COUNTS, wanted)
    assert (found.id, found.state_name) == (left.id, "Running")
    assert not worker.carries(left.id)
    await client.delete_flow_run(left.id)


async def test_a_run_that_begins_here_can_be_cancelled(client: PrefectClient, worker: InProcessWorker) -> None:
    [run] = await find_or_begin_runs(f"waits/{POOL}", [NewRun(str(uuid4()), "waits", {})])
    await client.set_flow_run_state(run.id, Cancelling())
    run = await until(client, run, final)
    assert run.state is not None
    assert run.state.is_cancelled()


async def test_a_paused_pool_keeps_its_scheduled_runs(client: PrefectClient, worker: InProcessWorker) -> None:
    await client.update_work_pool(POOL, WorkPoolUpdate(is_paused=True))
    try:
        [run] = await find_or_begin_runs(COUNTS, some_runs(1))
        assert run.state is not None
        assert run.state.is_scheduled()
    finally:
        await client.update_work_pool(POOL, WorkPoolUpdate(is_paused=False))
    assert (await until(client, run, final)).state_name == "Completed"


async def test_a_deployment_with_a_concurrency_limit_gets_scheduled_runs(
    client: PrefectClient, worker: InProcessWorker
) -> None:
    [run] = await find_or_begin_runs(f"alone/{POOL}", [NewRun(str(uuid4()), "alone", {})])
    assert run.state is not None
    assert run.state.is_scheduled()
    assert (await until(client, run, final)).state_name == "Completed"


async def test_without_a_worker_that_accepts_runs_they_are_scheduled(client: PrefectClient) -> None:
    [run] = await find_or_begin_runs(COUNTS, some_runs(1))
    assert run.state is not None
    assert run.state.is_scheduled()
    async with working(lambda: False):
        [held] = await find_or_begin_runs(COUNTS, some_runs(1))
        assert held.state is not None
        assert held.state.is_scheduled()
    async with working():
        assert [(await until(client, one, final)).state_name for one in (run, held)] == ["Completed"] * 2


async def test_a_refusal_of_the_server_is_raised(client: PrefectClient, worker: InProcessWorker) -> None:
    broken = {"number": {"__prefect_kind": "json", "value": "{"}}
    with pytest.raises(ValueError, match="JSON"):
        await find_or_begin_runs(COUNTS, [NewRun(str(uuid4()), "broken", broken)])
    run = await create(client, "counts", number=1)
    assert (await until(client, run, final)).state_name == "Completed"


async def test_the_error_of_one_batch_is_raised_after_the_others_are_done() -> None:
    done: list[int] = []

    async def lot(number: int) -> None:
        await asyncio.sleep(0)
        if number == 0:
            raise ValueError("lot 0")
        done.append(number)

    with pytest.raises(ValueError, match="lot 0"):
        await some_at_once(map(lot, range(5)), 2)
    assert done == [1, 2, 3, 4]


async def test_all_pages_of_runs_are_read(client: PrefectClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker runs here, so they stay scheduled."""
    monkeypatch.setattr(orphaned_runs, "PAGE", 2)
    created = {(await create(client, "counts", number=number)).id for number in range(5)}
    found = [run.id for run in await orphaned_runs.runs_in(client, POOL, StateType.SCHEDULED)]
    assert created <= set(found)
    assert len(found) == len(set(found))
    for run in found:
        await client.delete_flow_run(run)
