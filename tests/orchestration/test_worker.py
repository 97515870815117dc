"""The in-process worker on a real Prefect server, with the behaviour of Prefect that it depends on."""

from __future__ import annotations

import asyncio
import threading
from uuid import UUID

import pytest
from httpx import ConnectError
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.actions import WorkPoolUpdate
from prefect.client.schemas.objects import FlowRun, State
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import CronSchedule
from prefect.states import AwaitingRetry, Cancelling, Pending, Running

from orchestration.runs.flow_runs import Paused, start_run
from orchestration.runs.orphaned_runs import ENDED
from orchestration.worker import InProcessWorker
from tests.orchestration.pool import POOL, create, end_of, final, hold, parents, step, until, working

pytestmark = pytest.mark.timeout(300)


async def test_many_runs_of_the_pool_complete_in_one_process(client: PrefectClient, worker: InProcessWorker) -> None:
    threads = threading.active_count()
    runs = [await create(client, "counts", number=n) for n in range(10)]
    done = [await until(client, run, final) for run in runs]
    assert {run.state.name for run in done if run.state} == {"Completed"}
    assert threading.active_count() <= threads + 5  # not one per run


async def test_a_failed_run_can_be_retried(client: PrefectClient, worker: InProcessWorker) -> None:
    run = await until(client, await create(client, "fails_once"), final)
    assert run.state is not None
    assert run.state.is_failed()
    assert isinstance(
        await run.state.aresult(raise_on_failure=False), ValueError
    )  # the result is stored in the documented folder
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


async def test_a_run_that_another_run_starts_inherits_nothing_from_it(
    client: PrefectClient, worker: InProcessWorker
) -> None:
    parents.clear()
    await until(client, await create(client, "hands_over"), final)
    async with asyncio.timeout(120):
        while not parents:
            await asyncio.sleep(0.1)
    assert parents == [None]


async def test_a_paused_pool_keeps_its_scheduled_runs(client: PrefectClient, worker: InProcessWorker) -> None:
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


async def test_a_cancellation_whose_event_was_lost_is_found(
    client: PrefectClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(**_: object) -> None:
        raise ConnectError("All connection attempts failed")

    monkeypatch.setattr("orchestration.worker.get_events_subscriber", away)
    async with working() as worker:
        run = await create(client, "waits")
        await until(client, run, lambda r: r.state is not None and r.state.is_running())
        await client.set_flow_run_state(run.id, Cancelling())
        await worker.sync_with_backend()
        run = await until(client, run, final)
    assert run.state is not None
    assert run.state.is_cancelled()


async def left(client: PrefectClient, name: str, *states: State[None]) -> FlowRun:
    """Return a run in the state in which a killed process leaves it."""
    run = await create(client, name)
    for state in states:
        await client.set_flow_run_state(run.id, state)
    return run


async def test_no_run_of_a_dead_process_stays_running(client: PrefectClient) -> None:
    running = await left(client, "alone", Pending(), Running())
    with_task = await client.create_task_run(step, running.id, dynamic_key="0", state=Running())
    resumes = await left(client, "run_job", Pending(), Running())
    pending = await left(client, "run_job", Pending())
    cancelling = await left(client, "run_job", Pending(), Running(), Cancelling())
    async with working():
        assert await end_of(client, running) == ("Crashed", "Nothing carries it any more.")
        async with asyncio.timeout(60):
            while (await client.read_task_run(with_task.id)).state_name != "Crashed":
                await asyncio.sleep(0.1)
        assert await end_of(client, cancelling) == ("Cancelled", "Nothing carries it any more.")
        for run in (resumes, pending):
            assert (await end_of(client, run))[0] == "Completed"
        again = await create(client, "alone")  # its only slot is free again
        assert (await end_of(client, again))[0] == "Completed"


async def test_the_run_of_a_job_stays_running_while_its_process_restarts(client: PrefectClient) -> None:
    hold.append(asyncio.Event())
    try:
        async with working():
            run = await until(client, await create(client, "run_job"), lambda r: r.state_name == "Running")
        assert (await client.read_flow_run(run.id)).state_name == "Running"
        async with working() as worker:
            await until(client, run, lambda r: worker.carries(r.id))
            assert worker.has_taken_over()
            hold[0].set()
            assert (await end_of(client, run))[0] == "Completed"
    finally:
        hold.clear()
    states = [state.name for state in await client.read_flow_run_states(run.id)]
    assert states == ["Scheduled", "Pending", "Running", "Completed"]


async def test_runs_that_begin_together_read_their_deployment_once(
    client: PrefectClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[UUID] = []
    read = PrefectClient.read_deployment

    async def counted(self: PrefectClient, deployment_id: UUID) -> DeploymentResponse:
        reads.append(deployment_id)
        return await read(self, deployment_id)

    runs = [await left(client, "run_job", Pending(), Running()) for _ in range(10)]
    monkeypatch.setattr(PrefectClient, "read_deployment", counted)
    async with working():
        for run in runs:
            assert (await end_of(client, run))[0] == "Completed"
    assert reads == [runs[0].deployment_id], "for its limit only"


async def test_the_run_of_a_job_that_a_person_stops_is_cancelled(client: PrefectClient) -> None:
    hold.append(asyncio.Event())
    try:
        async with working():
            run = await until(client, await create(client, "run_job"), lambda r: r.state_name == "Running")
            await client.set_flow_run_state(run.id, Cancelling())
            assert (await end_of(client, run))[0] == "Cancelled"
    finally:
        hold.clear()


async def test_orphaned_runs_of_an_outage_end_and_carried_runs_continue(
    client: PrefectClient, worker: InProcessWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that crashed during an outage would keep its concurrency slot until the process ends."""
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


async def test_a_worker_starts_no_run_while_another_process_leads_its_pool(client: PrefectClient) -> None:
    leads = False
    async with working(lambda: leads) as worker:
        run = await create(client, "counts", number=3)
        assert await worker.get_and_submit_flow_runs() == []
        assert (await client.read_flow_run(run.id)).state_name == "Scheduled"
        leads = True
        assert (await until(client, run, final)).state_name == "Completed"


async def test_a_worker_that_gave_up_its_runs_reports_no_state_for_them(client: PrefectClient) -> None:
    """The process that carries them now reports their states."""
    async with working() as worker:
        run = await create(client, "waits")
        await until(client, run, lambda r: r.state is not None and r.state.is_running())
        worker.let_go()
    assert (await client.read_flow_run(run.id)).state_name == "Running"
    async with working():
        assert (await until(client, run, final)).state_name == "Crashed", "tidied by the next one"
