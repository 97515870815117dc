"""What makes the operator's process start a run at once: a change of the market, a proposal; and how often."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any
from uuid import uuid4

import pytest
from prefect.client.schemas.objects import FlowRun

from deepgrid.lifecycle.job import Label
from deployments.operator import market as market_module
from deployments.operator import on_demand
from deployments.operator.market import Market
from deployments.operator.on_demand import OnDemand
from runtime import required_runs as starting
from tests.chain.grid import HARDWARE, LABELS, PRICES, approve_waiting
from tests.operator.conftest import Office

WITHIN_S = 60


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(market_module, "LOOK_S", 0.01)
    monkeypatch.setattr(on_demand, "AGAIN_S", 0.01)


async def test_a_change_of_the_market_is_noticed_once(office: Office) -> None:
    seen: Counter[str] = Counter()
    looks = 0
    providers = office.session.chain.providers

    async def counted() -> Any:
        nonlocal looks
        looks += 1
        return await providers()

    office.session.chain.providers = counted  # type: ignore[method-assign]
    market = Market(office.session, lambda: seen.update(["changed"]), lambda: seen.update(["proposed"]))
    watching = asyncio.create_task(market.watch())

    async def some_looks() -> None:
        enough = looks + 3
        async with asyncio.timeout(WITHIN_S):
            while looks < enough:
                await asyncio.sleep(0.01)

    try:
        await some_looks()
        assert seen == {"changed": 1}  # the first look
        provider = office.people.provider
        await provider.register(HARDWARE, PRICES, (*LABELS, Label("compute.gflops", "1.00")))
        await some_looks()
        assert seen == {"changed": 2, "proposed": 1}
        await approve_waiting(office.people.operator, provider.address)
        await some_looks()
        assert seen == {"changed": 3, "proposed": 1}
        await office.people.customer.register(HARDWARE, PRICES, LABELS)
        await some_looks()
        assert seen == {"changed": 4, "proposed": 1}  # a newcomer is for a person
        office.grid.anvil.stop()
        await some_looks()
        assert not watching.done()
    finally:
        watching.cancel()


class Prefect:
    """Stands for Prefect: notes what was started, and ends each run as told."""

    def __init__(self, *ends: bool | Exception) -> None:
        self.started = 0
        self.open = asyncio.Semaphore(0)
        self._ends = list(ends)

    async def start_at_last(self, deployment: str, parameters: dict[str, Any]) -> FlowRun:
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
    monkeypatch.setattr(starting, "start_at_last", prefect.start_at_last)
    monkeypatch.setattr(starting, "run_ended", prefect.run_ended)
    wanted = OnDemand("flow/grid", {})
    return wanted, asyncio.create_task(wanted.serve())


async def test_wishes_during_a_run_lead_to_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    prefect = Prefect()
    on_demand_runs, task = serving(prefect, monkeypatch)
    on_demand_runs.want()
    await prefect.until_started(1)
    for _ in range(5):
        on_demand_runs.want()
    prefect.open.release()
    await prefect.until_started(2)
    prefect.open.release()
    on_demand_runs.want()
    await prefect.until_started(3)
    task.cancel()
    assert prefect.started == 3


async def test_a_run_that_failed_or_was_lost_is_followed_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    prefect = Prefect(False, RuntimeError("the server is away"), True)
    on_demand_runs, task = serving(prefect, monkeypatch)
    for _ in range(3):
        prefect.open.release()
    on_demand_runs.want()
    await prefect.until_started(3)
    assert not task.done()
    task.cancel()
