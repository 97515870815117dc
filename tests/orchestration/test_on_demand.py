"""Runs on demand: one at a time, one more for requests during a run, and retries after failures."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun

from deployments.operator.process import OnDemand
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
