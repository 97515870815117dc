"""A claim that was carried without a flow run gets its run from a real Prefect server, once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from prefect import flow, get_client
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.exceptions import ObjectAlreadyExists
from prefect.states import Cancelled, Completed, Crashed, Failed

from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.shared.claim_journal import ClaimJournal
from deployments.provider.carriers import CarrierWatchdog, runs_of
from orchestration.runs.flow_runs import Worker, calling_to_runs
from orchestration.runs.orphaned_runs import runs_in
from orchestration.worker import WORKER_TYPE
from tasks.job_runs import start_job_runs
from tests.grid.customer import PATIENCE_S

pytestmark = pytest.mark.timeout(300)

CLUSTER = "adoption-test"
KEY = JobKey(31337, "0x" + "ab" * 20, job_id=7, claimed_at=1_700_000_000)


@flow(name="run_job", persist_result=False)
async def run_job(cluster: str, job_id: int, claimed_at: int) -> None:
    """Never runs in these tests."""


@pytest.fixture
async def client(prefect_api: None) -> AsyncIterator[PrefectClient]:
    async with get_client() as client:
        pool = f"provider-{CLUSTER}"
        with suppress(ObjectAlreadyExists):
            await client.create_work_pool(WorkPoolCreate(name=pool, type=WORKER_TYPE))
        flow_id = await client.create_flow(run_job)
        await client.create_deployment(flow_id, name=CLUSTER, work_pool_name=pool, entrypoint=f"{__name__}.run_job")
        yield client
        for run in await runs_in(client, pool, *StateType):  # tests of real jobs find runs by the job's number
            await client.delete_flow_run(run.id)


@pytest.fixture
def session(tmp_path: Path) -> ProviderSession:
    """A provider without open claims."""
    return cast(
        ProviderSession,
        SimpleNamespace(
            settings=SimpleNamespace(cluster=CLUSTER, state=tmp_path), address="0xme", carries=lambda _: False,
            key=lambda job_id, claimed_at: replace(KEY, job_id=job_id, claimed_at=claimed_at),
        ),
    )  # fmt: skip


async def run_after_a_restart(client: PrefectClient, session: ProviderSession, key: JobKey) -> FlowRun:
    """Return the claim's run, after a supervisor has adopted the claim from the journal of the previous one."""
    kept = session.settings.state / f"{CLUSTER}.untold.json"
    ClaimJournal(kept, like=KEY).add([key])
    async with asyncio.timeout(PATIENCE_S):
        while set(ClaimJournal(kept, like=KEY)):  # Prefect may be slow to answer
            await CarrierWatchdog(session, {}, asyncio.TaskGroup())._check(time.monotonic())
    return (await runs_of(client, session, [key]))[key]


async def test_a_claim_that_ended_without_a_run_gets_one(client: PrefectClient, session: ProviderSession) -> None:
    run = await run_after_a_restart(client, session, KEY)
    assert run.parameters == {"cluster": CLUSTER, "job_id": 7, "claimed_at": KEY.claimed_at}
    assert run.state is not None and run.state.is_scheduled()
    again = await run_after_a_restart(client, session, KEY)
    assert (again.id, again.state_name) == (run.id, run.state_name), "it comes already"


async def test_the_run_of_a_pool_that_was_deleted_records_the_end_of_its_job(
    client: PrefectClient, session: ProviderSession
) -> None:
    """No poll of the new pool returns it."""
    key, pool = replace(KEY, job_id=time.monotonic_ns()), f"provider-{CLUSTER}"
    begun: list[FlowRun] = []
    [made] = await start_job_runs(session, [key])
    await client.delete_work_pool(pool)
    worker = SimpleNamespace(carries=lambda _: False, has_taken_over=lambda: True, begin=begun.append)
    with calling_to_runs(pool, cast(Worker, worker)):
        run = await run_after_a_restart(client, session, key)
    assert [one.id for one in begun] == [made.id] == [run.id]
    await client.delete_flow_run(made.id)


@pytest.mark.parametrize(
    ("state", "then"),
    [
        (Completed(), "Completed"),
        (Failed(), "AwaitingRetry"),
        (Crashed(), "AwaitingRetry"),
        (Cancelled(), "AwaitingRetry"),
    ],
    ids=str,
)
async def test_a_run_that_did_not_record_the_end_of_its_job_is_scheduled_again(
    client: PrefectClient, session: ProviderSession, state: State[None], then: str
) -> None:
    key = replace(KEY, job_id=time.monotonic_ns())
    [made] = await start_job_runs(session, [key])
    await client.set_flow_run_state(made.id, state, force=True)
    run = await run_after_a_restart(client, session, key)
    assert (run.id, run.state_name) == (made.id, then)
