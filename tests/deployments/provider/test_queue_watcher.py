"""A queue that is not empty starts its flow, one run at a time, through outages of the node and of Prefect."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from deepgrid.chain.node.values import Queues
from deepgrid.errors import ChainError
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.shared.wakeups import Wakeups
from deployments.provider.queue_watcher import QueueWatcher, QueueWatcherSettings
from orchestration.runs import flow_runs
from tests.waiting import until

WITHIN_S = 60


class World:
    """A chain with two queues, and a Prefect whose runs end when the test says so."""

    address = "0xme"
    settings = SimpleNamespace(cluster="alpha")
    is_idle = False

    def __init__(self) -> None:
        self.chain = self
        self.waiting = Queues(0, 0, 0)
        self.outages = self.polls = 0
        self.started: list[str] = []
        self.under_way: dict[str, asyncio.Event] = {}
        self.failures = 0
        self.claimed: list[SimpleNamespace] = []
        self.away = False  # Prefect
        self.wakeups = Wakeups()

    def wants(self, job_id: int, *, end: bool = False, more_wei: int = 0) -> None:
        """Add a customer's request for a job with a carrier."""
        self.claimed.append(SimpleNamespace(id=job_id, has_cancel_request=end, pending_top_up_wei=more_wei))
        wanted = [(job.has_cancel_request, job.pending_top_up_wei > 0) for job in self.claimed]
        self.waiting = Queues(0, *map(sum, zip(*wanted, strict=True)))

    async def claimed_jobs(self, address: str) -> list[int]:
        return [job.id for job in self.claimed]

    async def jobs(self, job_ids: list[int]) -> list[SimpleNamespace]:
        return self.claimed

    def key_of(self, job: SimpleNamespace) -> int:
        return int(job.id)

    def carries(self, key: int) -> bool:
        return True

    async def queues(self, address: str) -> Queues:
        assert address == self.address
        self.polls += 1
        if self.outages:
            self.outages -= 1
            raise ChainError("The node is away.")
        return self.waiting

    async def start(self, deployment: str, parameters: dict[str, Any]) -> SimpleNamespace:
        assert parameters == {"cluster": "alpha"}
        if self.away:
            await asyncio.Event().wait()
        assert deployment not in self.under_way, "two at a time"
        self.started.append(deployment)
        self.under_way[deployment] = asyncio.Event()
        return SimpleNamespace(name=deployment)

    async def ended(self, run: SimpleNamespace) -> bool:
        if self.failures:
            self.failures -= 1
            del self.under_way[run.name]
            raise RuntimeError("Prefect knows no such run")
        await self.under_way[run.name].wait()
        del self.under_way[run.name]
        return True

    def end(self, deployment: str) -> None:
        """End the run. It has emptied its queue."""
        self.waiting = Queues(0, 0, 0)
        self.under_way[deployment].set()

    async def until(self, condition: Callable[[], bool]) -> None:
        await until(condition, pause_s=0)

    async def some_polls(self) -> None:
        seen = self.polls
        await self.until(lambda: self.polls > seen + 5)


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    world = World()
    monkeypatch.setattr(flow_runs, "start_eventually", world.start)
    monkeypatch.setattr(flow_runs, "run_ended", world.ended)
    async with _watching(world):
        yield world


@asynccontextmanager
async def _watching(world: World) -> AsyncIterator[None]:
    settings = QueueWatcherSettings(poll_s=0, run_retry_s=0)
    task = asyncio.create_task(QueueWatcher(cast(ProviderSession, world), settings).watch())
    yield
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_empty_queues_start_nothing(world: World) -> None:
    world.waiting = Queues(claimable=3, cancelling=0, topped_up=0)
    await world.some_polls()
    assert world.started == []


async def test_each_queue_has_one_run_at_a_time(world: World) -> None:
    world.waiting = Queues(0, 2, 1)
    await world.until(lambda: len(world.under_way) == 2)
    await world.some_polls()
    assert sorted(world.started) == ["cancel_jobs/alpha", "top_up_jobs/alpha"]
    world.end("cancel_jobs/alpha")
    await world.until(lambda: len(world.under_way) == 1)
    world.waiting = Queues(0, 1, 1)
    await world.until(lambda: len(world.under_way) == 2)
    assert sorted(world.started) == ["cancel_jobs/alpha", "cancel_jobs/alpha", "top_up_jobs/alpha"]


async def test_carriers_are_woken_while_prefect_is_away(world: World) -> None:
    world.away = True
    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as carriers:
        for job_id in (7, 8):
            carriers.create_task(world.wakeups.wait(job_id, math.inf))
        await world.some_polls()
        world.wants(7, end=True)
        await world.some_polls()
        world.wants(8, more_wei=1)
    assert world.started == []


async def test_the_watcher_survives_outages(world: World) -> None:
    world.outages, world.failures = 5, 3
    world.waiting = Queues(0, 0, 1)
    await world.until(lambda: world.failures == 0 and bool(world.under_way))
    assert world.started == ["top_up_jobs/alpha"] * 4
