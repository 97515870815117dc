"""A work pool on a real Prefect server, with deployments of small flows, and in-process workers for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from uuid import UUID

import pytest
from prefect import flow, get_client, task
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.objects import ConcurrencyLimitStrategy, ConcurrencyOptions, FlowRun
from prefect.context import FlowRunContext
from prefect.exceptions import ObjectAlreadyExists

from orchestration.runs.flow_runs import calling_to_runs, start_run
from orchestration.worker import WORKER_TYPE, InProcessWorker

POOL = "worker-test"
attempts: list[int] = []
parents: list[UUID | None] = []
hold: list[asyncio.Event] = []  # while it has an event, runs of `run_job` wait for it


@task
async def step(number: int) -> int:
    return number


@flow(name="counts", persist_result=False)
async def counts(number: int) -> int:
    """Run one task and record the parent run that it sees."""
    context = FlowRunContext.get()
    parents.append(context.flow_run.parent_task_run_id if context and context.flow_run else None)
    return await step(number)


@flow(name="fails_once", persist_result=False)
async def fails_once() -> None:
    """Fail on the first attempt."""
    attempts.append(1)
    if len(attempts) == 1:
        raise ValueError("the first attempt fails")


@flow(name="waits", persist_result=False)
async def waits() -> None:
    """Run until cancelled."""
    await asyncio.Event().wait()


@flow(name="hands_over", persist_result=False)
async def hands_over() -> None:
    """Start another run from inside this one."""
    await start_run(f"counts/{POOL}", {"number": 7})


@flow(name="alone", persist_result=False)
async def alone() -> None:
    """Run alone: the deployment has a concurrency limit of one."""


@flow(name="run_job", persist_result=False)
async def resumed() -> None:
    """Resume at any point, like the real flow."""
    for event in hold:
        await event.wait()


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
    """Yield a worker of the pool for the duration of the context."""
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
    """Create a scheduled run in the pool, as the UI's Run button does."""
    deployment = await client.read_deployment_by_name(f"{name}/{POOL}")
    return await client.create_flow_run_from_deployment(deployment.id, parameters=parameters)


async def end_of(client: PrefectClient, run: FlowRun) -> tuple[str | None, str | None]:
    """Return the name and message of the run's final state."""
    run = await until(client, run, final)
    assert run.state is not None
    return run.state.name, run.state.message
