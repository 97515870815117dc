"""Runs continue when a person deletes their deployment or work pool, and deploys again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from uuid import UUID

import pytest
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.states import AwaitingRetry, Cancelled, Pending, Running

from deepgrid.errors import ConfigurationError
from orchestration.runs.deleted_places import begin_without_deployment, has_no_pool
from orchestration.runs.flow_runs import schedule, start_run
from orchestration.worker import WORKER_TYPE, InProcessWorker
from tests.orchestration import pool
from tests.orchestration.pool import POOL, create, end_of, working

pytestmark = pytest.mark.timeout(300)


async def deploy(client: PrefectClient) -> UUID:
    entrypoint = f"{pool.__name__}.{pool.resumed.fn.__name__}"
    flow = await client.create_flow(pool.resumed)
    return await client.create_deployment(flow, name=POOL, work_pool_name=POOL, entrypoint=entrypoint)


async def left_running(client: PrefectClient) -> FlowRun:
    run = await create(client, "run_job")
    for state in (Pending(), Running()):
        await client.set_flow_run_state(run.id, state)
    return run


@pytest.fixture
async def orphans(client: PrefectClient) -> AsyncIterator[list[FlowRun]]:
    """Two runs of a deployment that was deleted: one was Running then, one is scheduled again."""
    runs = [await left_running(client) for _ in range(2)]
    deployment = runs[0].deployment_id
    assert deployment is not None
    await client.delete_deployment(deployment)
    await schedule(client, runs[1].id, AwaitingRetry(message="No process carried the job."))
    yield runs
    for run in runs:
        await client.delete_flow_run(run.id)


async def test_runs_of_a_deleted_deployment_take_the_flow_of_the_new_one(
    client: PrefectClient, orphans: list[FlowRun]
) -> None:
    """Prefect refuses to start them. The runs of jobs stayed late forever."""
    await deploy(client)
    async with working():
        for run in orphans:
            assert (await end_of(client, run))[0] == "Completed"


async def test_they_wait_for_the_new_deployment_with_one_line_each(
    client: PrefectClient, orphans: list[FlowRun], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled = orphans.pop()
    waiting = [orphans[0].id, cancelled.id]
    refused: list[UUID] = []

    async def counted(client: PrefectClient, run: FlowRun, work_pool: str) -> str | None:
        refused.append(run.id)
        return await begin_without_deployment(client, run, work_pool)

    monkeypatch.setattr("orchestration.worker.begin_without_deployment", counted)
    caplog.set_level(logging.INFO, "orchestration.worker")
    async with working():
        async with asyncio.timeout(120):
            while min(map(refused.count, waiting)) < 2:
                await asyncio.sleep(0.05)
        assert [caplog.text.count(f"run {run_id} does not begin") for run_id in waiting] == [1, 1]
        await client.set_flow_run_state(cancelled.id, Cancelled())
        await deploy(client)
        assert (await end_of(client, orphans[0]))[0] == "Completed"
    assert (await client.read_flow_run(cancelled.id)).state_name == "Cancelled"
    await client.delete_flow_run(cancelled.id)


async def test_a_run_whose_pool_was_deleted_is_found_and_begins(client: PrefectClient, worker: InProcessWorker) -> None:
    """The worker makes the pool again, but no poll returns the run."""
    planned = await create(client, "run_job")
    assert not has_no_pool(await client.read_flow_run(planned.id))
    await end_of(client, planned)
    await client.delete_work_pool(POOL)
    with pytest.raises(ConfigurationError, match=f"The work pool of run_job/{POOL} was deleted. Deploy it again."):
        await start_run(f"run_job/{POOL}", {})
    lost = await create(client, "run_job")
    assert has_no_pool(await client.read_flow_run(lost.id))
    await worker.sync_with_backend()
    assert (await client.read_work_pool(POOL)).type == WORKER_TYPE
    await worker.get_and_submit_flow_runs()
    assert not worker.carries(lost.id)
    worker.begin(lost)
    assert (await end_of(client, lost))[0] == "Completed"
