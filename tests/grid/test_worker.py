"""The in-process worker against a real Prefect server: what it leans on in Prefect, checked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from httpx import ConnectError
from prefect import flow, get_client, states, task
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
from prefect.client.schemas.objects import ConcurrencyLimitStrategy, ConcurrencyOptions, FlowRun, State, StateType
from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule
from prefect.context import FlowRunContext
from prefect.exceptions import ObjectAlreadyExists
from prefect.states import AwaitingRetry, Cancelling, Pending, Running, Scheduled
from prefect.types import _datetime as prefect_time

from deployments.tidying import ENDED, runs_in
from deployments.worker import WORKER_TYPE, InProcessWorker
from tasks.runs import Paused, calling_to_runs, schedule, start_run

pytestmark = pytest.mark.timeout(300)

POOL = "worker-test"
attempts: list[int] = []
parents: list[UUID | None] = []


@task
async def step(number: int) -> int:
    return number


@flow(name="counts", persist_result=False)
async def counts(number: int) -> int:
    """Runs one task; remembers what it sees of a parent run."""
    context = FlowRunContext.get()
    parents.append(context.flow_run.parent_task_run_id if context and context.flow_run else None)
    return await step(number)


@flow(name="fails_once", persist_result=False)
async def fails_once() -> None:
    """Fails at its first attempt."""
    attempts.append(1)
    if len(attempts) == 1:
        raise ValueError("the first attempt fails")


@flow(name="waits", persist_result=False)
async def waits() -> None:
    """Runs until it is cancelled."""
    await asyncio.Event().wait()


@flow(name="hands_over", persist_result=False)
async def hands_over() -> None:
    """Starts another run from inside its own."""
    await start_run(f"counts/{POOL}", {"number": 7})


@flow(name="alone", persist_result=False)
async def alone() -> None:
    """May not meet itself."""


@flow(name="run_job", persist_result=False)
async def resumed() -> None:
    """Goes on from the truth, as the real one does."""


@pytest.fixture
async def client(prefect_api: None) -> AsyncIterator[PrefectClient]:
    async with get_client() as client:
        template = InProcessWorker.get_default_base_job_template()
        with suppress(ObjectAlreadyExists):
            await client.create_work_pool(WorkPoolCreate(name=POOL, type=WORKER_TYPE, base_job_template=template))
        for one in (counts, fails_once, waits, hands_over, alone, resumed):
            limit = 1 if one is alone else None
            options = ConcurrencyOptions(collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW) if limit else None
            await client.create_deployment(
                await client.create_flow(one), name=POOL, work_pool_name=POOL,
                entrypoint=f"{__name__}.{one.fn.__name__}", concurrency_limit=limit, concurrency_options=options,
            )  # fmt: skip
        yield client


@asynccontextmanager
async def working(may_start: Callable[[], bool] = lambda: True) -> AsyncIterator[InProcessWorker]:
    """A worker of the pool while the context lasts."""
    online = asyncio.Event()
    worker = InProcessWorker(POOL, may_start)
    task = asyncio.create_task(worker.start(printer=lambda *_: online.set()))
    await online.wait()
    with calling_to_runs(POOL, worker):
        yield worker
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def worker(client: PrefectClient) -> AsyncIterator[InProcessWorker]:
    async with working() as worker:
        yield worker


async def until(client: PrefectClient, run: FlowRun, reached: Callable[[FlowRun], bool]) -> FlowRun:
    async with asyncio.timeout(120):
        while not reached(run := await client.read_flow_run(run.id)):
            await asyncio.sleep(0.2)
    return run


def final(run: FlowRun) -> bool:
    return run.state is not None and run.state.is_final()


async def create(client: PrefectClient, name: str, **parameters: object) -> FlowRun:
    """A run that only the pool knows of, as the UI's Run button makes one."""
    deployment = await client.read_deployment_by_name(f"{name}/{POOL}")
    return await client.create_flow_run_from_deployment(deployment.id, parameters=parameters)


async def test_many_runs_of_the_pool_complete_in_one_process(client: PrefectClient, worker: InProcessWorker) -> None:
    threads = threading.active_count()
    runs = [await create(client, "counts", number=n) for n in range(10)]
    done = [await until(client, run, final) for run in runs]
    assert {run.state.name for run in done if run.state} == {"Completed"}
    assert threading.active_count() <= threads + 5  # not one a run


async def test_a_failed_run_can_be_retried(client: PrefectClient, worker: InProcessWorker) -> None:
    run = await until(client, await create(client, "fails_once"), final)
    assert run.state is not None
    assert run.state.is_failed()
    assert isinstance(await run.state.aresult(raise_on_failure=False), ValueError)  # kept where it was promised
    await client.set_flow_run_state(run.id, AwaitingRetry())
    run = await until(client, run, lambda r: final(r) and r.run_count == 2)
    assert run.state is not None
    assert run.state.is_completed()


async def test_what_is_due_is_for_the_clock_of_prefects_server_to_say(
    client: PrefectClient, worker: InProcessWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = prefect_time.now
    monkeypatch.setattr(prefect_time, "now", lambda *zone: right(*zone) + timedelta(hours=1))
    deployment = await client.read_deployment_by_name(f"counts/{POOL}")
    at = Scheduled(scheduled_time=datetime.now(UTC) + timedelta(minutes=30))
    later = await client.create_flow_run_from_deployment(deployment.id, parameters={"number": 1}, state=at)
    done = await until(client, await create(client, "counts", number=2), final)
    assert done.state is not None
    assert done.state.is_completed()
    state = (await client.read_flow_run(later.id)).state
    assert state is not None
    assert state.is_scheduled()
    await client.delete_flow_run(later.id)


async def test_cancelling_a_run_stops_it(client: PrefectClient, worker: InProcessWorker) -> None:
    run = await create(client, "waits")
    await until(client, run, lambda r: r.state is not None and r.state.is_running())
    await client.set_flow_run_state(run.id, Cancelling())
    run = await until(client, run, final)
    assert run.state is not None
    assert run.state.is_cancelled()


async def test_a_run_handed_over_inherits_nothing(client: PrefectClient, worker: InProcessWorker) -> None:
    parents.clear()
    await until(client, await create(client, "hands_over"), final)
    async with asyncio.timeout(120):
        while not parents:
            await asyncio.sleep(0.1)
    assert parents == [None]


async def test_a_paused_pool_keeps_what_it_is_given(client: PrefectClient, worker: InProcessWorker) -> None:
    await client.update_work_pool(POOL, WorkPoolUpdate(is_paused=True))
    try:
        run = await start_run(f"counts/{POOL}", {"number": 1})
        assert await worker.get_and_submit_flow_runs() == []
        run = await client.read_flow_run(run.id)
        assert run.state is not None
        assert run.state.is_scheduled()
    finally:
        await client.update_work_pool(POOL, WorkPoolUpdate(is_paused=False))
    run = await until(client, run, final)
    assert run.state is not None
    assert run.state.is_completed()


async def test_a_paused_deployment_starts_nothing_until_it_is_resumed(
    client: PrefectClient, worker: InProcessWorker
) -> None:
    deployment = await client.read_deployment_by_name(f"counts/{POOL}")
    nightly = [(CronSchedule(cron="0 3 * * *"), False)]
    [schedule] = await client.create_deployment_schedules(deployment.id, nightly)
    try:
        with pytest.raises(Paused, match=f"counts/{POOL} is paused; resume it in Prefect's UI"):
            await start_run(f"counts/{POOL}", {"number": 1})
        await client.update_deployment_schedule(deployment.id, schedule.id, active=True)
        run = await until(client, await start_run(f"counts/{POOL}", {"number": 1}), final)
    finally:
        await client.delete_deployment_schedule(deployment.id, schedule.id)
    assert run.state is not None
    assert run.state.is_completed()


async def test_a_cancelling_that_was_told_to_nobody_is_found(client: PrefectClient, worker: InProcessWorker) -> None:
    run = await create(client, "waits")
    await until(client, run, lambda r: r.state is not None and r.state.is_running())
    assert worker._cancelling_observer is not None
    worker._cancelling_observer._in_flight_flow_run_ids.clear()  # as when Prefect's event was lost
    await client.set_flow_run_state(run.id, Cancelling())
    await worker._sync_and_initialize()
    run = await until(client, run, final)
    assert run.state is not None
    assert run.state.is_cancelled()


async def left(client: PrefectClient, name: str, *states: State[None]) -> FlowRun:
    """A run as a process leaves it that dies."""
    run = await create(client, name)
    for state in states:
        await client.set_flow_run_state(run.id, state)
    return run


async def end_of(client: PrefectClient, run: FlowRun) -> tuple[str | None, str | None]:
    """Name and message of the run's final state."""
    run = await until(client, run, final)
    assert run.state is not None
    return run.state.name, run.state.message


async def test_no_run_of_a_dead_process_stays_under_way(client: PrefectClient) -> None:
    running = await left(client, "alone", Pending(), Running())
    with_task = await client.create_task_run(step, running.id, dynamic_key="0", state=Running())
    resumes = await left(client, "run_job", Pending(), Running())
    cancelling = await left(client, "run_job", Pending(), Running(), Cancelling())
    async with working():
        assert await end_of(client, running) == ("Crashed", "Nothing carries it any more.")
        assert (await client.read_task_run(with_task.id)).state_name == "Crashed"
        assert await end_of(client, cancelling) == ("Cancelled", "Nothing carries it any more.")
        assert (await end_of(client, resumes))[0] == "Completed"
        again = await create(client, "alone")  # its only slot is free again
        assert (await end_of(client, again))[0] == "Completed"


async def test_what_an_outage_left_under_way_ends_while_what_is_carried_goes_on(
    client: PrefectClient, worker: InProcessWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that crashed while nobody heard it would keep its slot until the process ends: no other would be let in."""
    carried = await create(client, "waits")
    await until(client, carried, lambda r: r.state is not None and r.state.is_running())
    unheard = await left(client, "alone", Pending(), Running())

    async def away(*_: object, **__: object) -> list[FlowRun]:
        raise ConnectError("All connection attempts failed")

    with monkeypatch.context() as patch:
        patch.setattr(worker.client, "get_scheduled_flow_runs_for_work_pool", away)
        assert await worker.get_and_submit_flow_runs() == []
    assert await end_of(client, unheard) == ("Crashed", ENDED)
    again = await create(client, "alone")
    assert (await end_of(client, again))[0] == "Completed"
    assert (await client.read_flow_run(carried.id)).state_name == "Running"
    await client.set_flow_run_state(carried.id, Cancelling())


async def test_a_worker_whose_pool_is_anothers_begins_nothing_until_it_is_its_own(client: PrefectClient) -> None:
    leads = False
    async with working(lambda: leads) as worker:
        run = await create(client, "counts", number=3)
        assert await worker.get_and_submit_flow_runs() == []
        assert (await client.read_flow_run(run.id)).state_name == "Scheduled"
        leads = True
        assert (await until(client, run, final)).state_name == "Completed"


async def test_a_worker_that_let_go_says_nothing_more_of_its_runs(client: PrefectClient) -> None:
    """Whoever carries the pool by now knows better."""
    async with working() as worker:
        run = await create(client, "waits")
        await until(client, run, lambda r: r.state is not None and r.state.is_running())
        worker.let_go()
    assert (await client.read_flow_run(run.id)).state_name == "Running"
    async with working():
        assert (await until(client, run, final)).state_name == "Crashed", "tidied by the next one"


async def test_a_long_downtime_starts_no_burst(client: PrefectClient) -> None:
    deployment = await client.read_deployment_by_name(f"counts/{POOL}")
    often = IntervalSchedule(interval=timedelta(seconds=1))
    [schedule] = await client.create_deployment_schedules(deployment.id, [(often, True)], parameters={"number": 2})
    late: list[FlowRun] = []
    try:
        async with asyncio.timeout(120):
            while len(late) < 3:
                await asyncio.sleep(0.5)
                now = datetime.now(UTC)
                runs = await runs_in(client, POOL, StateType.SCHEDULED)
                late = [run for run in runs if run.auto_scheduled and run.expected_start_time < now]
        async with working():
            ends = [await end_of(client, run) for run in late]
    finally:
        await client.delete_deployment_schedule(deployment.id, schedule.id)
    skipped = ("Cancelled", "Skipped: a later run was due as well.")
    assert len([end for end in ends if end != skipped]) <= 1


async def test_a_clock_that_is_an_hour_ahead_holds_nothing_back(
    client: PrefectClient, worker: InProcessWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prefect's server starts nothing before its time, by its own clock: claims would wait for that hour."""
    clock = states.now
    monkeypatch.setattr(states, "now", lambda: clock() + timedelta(hours=1))
    run = await until(client, await start_run(f"counts/{POOL}", {"number": 3}), final)
    assert run.state is not None and run.state.is_completed()
    await schedule(client, run.id, AwaitingRetry(message="once more"))
    await until(client, run, lambda run: run.run_count == 2 and final(run))
