"""The in-process worker starts scheduled runs by the clock of Prefect's server, and after a downtime."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from prefect import states
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.client.schemas.schedules import IntervalSchedule
from prefect.states import AwaitingRetry, Scheduled
from prefect.types import _datetime as prefect_time

from orchestration.runs.flow_runs import schedule, start_run
from orchestration.runs.orphaned_runs import runs_in
from orchestration.worker import InProcessWorker
from tests.orchestration.pool import POOL, create, end_of, final, until, working

pytestmark = pytest.mark.timeout(300)


async def test_the_clock_of_prefects_server_decides_which_runs_are_due(
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


async def test_a_long_downtime_starts_no_burst(client: PrefectClient) -> None:
    deployment = await client.read_deployment_by_name(f"counts/{POOL}")
    often = IntervalSchedule(interval=timedelta(seconds=1))
    [schedule] = await client.create_deployment_schedules(deployment.id, [(often, True)], parameters={"number": 2})
    late: list[FlowRun] = []
    try:
        async with asyncio.timeout(120):
            while len(late) < 6:
                await asyncio.sleep(0.5)
                now = datetime.now(UTC)
                runs = await runs_in(client, POOL, StateType.SCHEDULED)
                late = [run for run in runs if run.auto_scheduled and run.expected_start_time < now]
        async with working():
            ends = [await end_of(client, run) for run in late]
    finally:
        await client.delete_deployment_schedule(deployment.id, schedule.id)
    skipped = ("Cancelled", "Skipped: a later run was due as well.")
    assert len([end for end in ends if end != skipped]) <= 2  # a busy server hands out the late ones in two parts


async def test_no_run_is_taken_before_its_time(client: PrefectClient, worker: InProcessWorker) -> None:
    """A Pending run holds its deployment's only slot: a run that a person starts meanwhile would be cancelled."""
    deployment = await client.read_deployment_by_name(f"counts/{POOL}")
    due = datetime.now(UTC) + timedelta(seconds=8)
    scheduled = Scheduled(scheduled_time=due)
    run = await client.create_flow_run_from_deployment(deployment.id, parameters={"number": 1}, state=scheduled)
    await until(client, await start_run(f"counts/{POOL}", {"number": 2}), final)  # the worker has polled
    await until(client, run, final)
    pending = next(state for state in await client.read_flow_run_states(run.id) if state.is_pending())
    assert pending.timestamp > due - timedelta(seconds=2)  # the server reports its clock in whole seconds


async def test_a_clock_that_is_an_hour_ahead_holds_nothing_back(
    client: PrefectClient, worker: InProcessWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prefect's server gives out no run early by its own clock. Otherwise claims would wait for that hour."""
    clock = states.now
    monkeypatch.setattr(states, "now", lambda: clock() + timedelta(hours=1))
    run = await until(client, await start_run(f"counts/{POOL}", {"number": 3}), final)
    assert run.state is not None and run.state.is_completed()
    await schedule(client, run.id, AwaitingRetry(message="once more"))
    await until(client, run, lambda run: run.run_count == 2 and final(run))
