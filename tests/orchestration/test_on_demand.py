"""Runs on demand: one at a time, one more for requests during a run, and retries after failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import httpx
import pytest
from prefect.client.schemas.objects import FlowRun

from orchestration import on_demand
from orchestration.on_demand import OnDemand, run_when_needed
from orchestration.runs import flow_runs

WITHIN_S = 60


class Prefect:
    """Replaces Prefect: counts the started runs, and ends each run when the test says so."""

    def __init__(self, *ends: bool | Exception) -> None:
        self.started = 0
        self.open = asyncio.Semaphore(0)
        self._ends = list(ends)

    async def start_eventually(self, deployment: str, parameters: dict[str, Any]) -> FlowRun:
        self.started += 1
        return FlowRun(name=deployment, flow_id=uuid4())

    async def run_ended(self, run: FlowRun) -> bool:
        await self.open.acquire()
        end = self._ends.pop(0) if self._ends else True
        if isinstance(end, Exception):
            raise end
        return end

    async def until_started(self, times: int) -> None:
        async with asyncio.timeout(WITHIN_S):
            while self.started < times:
                await asyncio.sleep(0.01)


def serving(prefect: Prefect, monkeypatch: pytest.MonkeyPatch) -> tuple[OnDemand, asyncio.Task[None]]:
    monkeypatch.setattr(flow_runs, "start_eventually", prefect.start_eventually)
    monkeypatch.setattr(flow_runs, "run_ended", prefect.run_ended)
    runs = OnDemand("flow/grid", {}, retry_s=0.01)
    return runs, asyncio.create_task(runs.serve())


async def test_requests_during_a_run_lead_to_one_more_run(monkeypatch: pytest.MonkeyPatch) -> None:
    prefect = Prefect()
    on_demand_runs, task = serving(prefect, monkeypatch)
    on_demand_runs.request()
    await prefect.until_started(1)
    for _ in range(5):
        on_demand_runs.request()
    prefect.open.release()
    await prefect.until_started(2)
    prefect.open.release()
    on_demand_runs.request()
    await prefect.until_started(3)
    task.cancel()
    assert prefect.started == 3


async def test_a_failed_or_lost_run_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    prefect = Prefect(False, RuntimeError("the server is away"), True)
    on_demand_runs, task = serving(prefect, monkeypatch)
    for _ in range(3):
        prefect.open.release()
    on_demand_runs.request()
    await prefect.until_started(3)
    assert not task.done()
    task.cancel()


class Deployments:
    """Replaces Prefect's API: one deployment, which may be paused or not there."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_active, self.fault, self.looks = True, False, 0
        self.asked: list[dict[str, Any]] = []
        self.runs: list[str] = []
        monkeypatch.setattr(on_demand, "asking", self.asking)
        monkeypatch.setattr(on_demand, "run_to_completion", self.run)

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[Deployments]:
        yield self

    async def read_deployment_by_name(self, _name: str) -> SimpleNamespace:
        self.looks += 1
        if self.fault:
            raise httpx.ConnectError("All connection attempts failed")
        schedule = SimpleNamespace(active=self.is_active)
        return SimpleNamespace(schedules=[schedule], paused=False, parameters={"silent_hours": 24})

    async def run(self, deployment: str, _parameters: dict[str, Any]) -> bool:
        self.runs.append(deployment)
        return True

    async def has_work(self, parameters: dict[str, Any]) -> bool:
        self.asked.append(parameters)
        return len(self.asked) == 2

    async def some_looks(self) -> None:
        enough = self.looks + 4
        async with asyncio.timeout(WITHIN_S):
            while self.looks < enough:
                await asyncio.sleep(0.01)


async def test_a_run_starts_only_when_there_is_work_and_never_while_paused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prefect = Deployments(monkeypatch)
    task = asyncio.create_task(run_when_needed("expire_claims/grid", prefect.has_work, 0.001))
    await prefect.some_looks()
    assert prefect.runs == ["expire_claims/grid"]
    assert prefect.asked[0] == {"silent_hours": 24}
    prefect.is_active = False
    await prefect.some_looks()
    asked = len(prefect.asked)
    await prefect.some_looks()
    assert len(prefect.asked) == asked
    prefect.fault = True
    await prefect.some_looks()
    assert caplog.text.count("cannot check whether expire_claims/grid is needed, trying again") == 1
    task.cancel()
