"""The in-process worker against a real Prefect server: what it leans on in Prefect, checked."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from uuid import UUID

import pytest
from prefect import flow, get_client, task
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.objects import FlowRun
from prefect.context import FlowRunContext
from prefect.events.worker import EventsWorker
from prefect.exceptions import ObjectAlreadyExists
from prefect.logging.handlers import APILogWorker
from prefect.settings import PREFECT_API_URL, PREFECT_WORKER_QUERY_SECONDS, temporary_settings
from prefect.states import AwaitingRetry, Cancelling

from deployments.onemachine.grid import Grid
from deployments.worker import WORKER_TYPE, InProcessWorker
from tasks.runs import offering_runs_to, start_run

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


@pytest.fixture
def api(grid: Grid) -> Iterator[None]:
    """Prefect's settings for the grid's server; what the tests sent is delivered while it is still there."""
    url = grid.prefect.environment()["PREFECT_API_URL"]
    with temporary_settings({PREFECT_API_URL: url, PREFECT_WORKER_QUERY_SECONDS: 1}):
        yield
        APILogWorker.drain_all(timeout=30)
        EventsWorker.drain_all(timeout=30)


@pytest.fixture
async def client(api: None) -> AsyncIterator[PrefectClient]:
    async with get_client() as client:
        template = InProcessWorker.get_default_base_job_template()
        with suppress(ObjectAlreadyExists):
            await client.create_work_pool(WorkPoolCreate(name=POOL, type=WORKER_TYPE, base_job_template=template))
        for one in (counts, fails_once, waits, hands_over):
            flow_id = await client.create_flow(one)
            entrypoint = f"{__name__}.{one.fn.__name__}"
            await client.create_deployment(flow_id, name=POOL, work_pool_name=POOL, entrypoint=entrypoint)
        yield client


@pytest.fixture
async def worker(client: PrefectClient) -> AsyncIterator[InProcessWorker]:
    online = asyncio.Event()
    worker = InProcessWorker(POOL)
    task = asyncio.create_task(worker.start(printer=lambda *_: online.set()))
    await online.wait()
    with offering_runs_to(POOL, worker.take):
        yield worker
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


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
    await client.set_flow_run_state(run.id, AwaitingRetry())
    run = await until(client, run, lambda r: final(r) and r.run_count == 2)
    assert run.state is not None
    assert run.state.is_completed()


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
