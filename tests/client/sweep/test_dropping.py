"""A sweep is cancelled while the services are down: running jobs are cancelled, and no others are requested."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from deepgrid.client.job_set import AsyncJobSet
from deepgrid.client.sweep.driver import Sweep, SweepLimits
from deepgrid.client.sweep.plan import Entry
from deepgrid.errors import ChainError
from deepgrid.lifecycle.states import JobStatus

PATIENT_S = 60


class DeadServices:
    """A connection with a node, whose services answer once `back` is set."""

    def __init__(self) -> None:
        self.background: set[Any] = set()
        self.uploads, self.spending = asyncio.Semaphore(4), asyncio.Lock()
        self.settings = SimpleNamespace(longest_pause_s=1, refill_s=0.1)
        self.session = self.writer = self.services = self
        self.reads = self.reads_forever = self
        self.address = "0x1"
        self.asked, self.back = asyncio.Event(), asyncio.Event()
        self.cancelled: list[int] = []
        self.requested: list[Any] = []

    async def balance(self, address: str) -> int:
        return 10**24

    async def cancel_job(self, job_id: int) -> None:
        self.cancelled.append(job_id)

    async def request_all(self, orders: Any, *, approve: bool = True) -> list[int]:
        self.requested += orders
        raise AssertionError("a job was requested after it was dropped")

    async def patiently(self, call: Any, *, forever: bool = False) -> None:
        self.asked.set()
        await self.back.wait()


def entry(name: str) -> Entry:
    return Entry({}, None, b"", name, 0, 0, 1)  # type: ignore[arg-type]


async def test_what_runs_is_cancelled_while_the_services_are_down() -> None:
    connection = DeadServices()
    plan = SimpleNamespace(
        named=False, key=SimpleNamespace(folder=None, id="k"), terms=SimpleNamespace(after=0), credits_wei=1,
        order=lambda _: None, mark=lambda _: None,
    )  # fmt: skip
    entries = [entry("a"), entry("b")]
    entries[0].job = SimpleNamespace(id=7, over=False)  # type: ignore[assignment]
    sweep = Sweep(connection, plan, entries, SweepLimits(2))  # type: ignore[arg-type]
    sweep._hot[7] = sweep._missing.pop("a")
    sweep.start()
    await asyncio.wait_for(connection.asked.wait(), PATIENT_S)
    await asyncio.wait_for(AsyncJobSet(sweep, entries).cancel(), PATIENT_S)
    assert connection.cancelled == [7]
    refused = entries[1].unsubmitted
    assert refused is not None and refused.status is JobStatus.CANCELLED
    assert sweep.ended == [entries[1]]
    connection.back.set()  # now the definition of the dropped job is stored
    await asyncio.wait_for(asyncio.gather(*connection.background), PATIENT_S)
    assert (connection.requested, sweep.error is None) == ([], False), "the sweep ends, and job 7 is not followed here"


async def test_jobs_are_looked_up_if_they_cannot_be_read_after_their_request() -> None:
    """Otherwise the next round would request them again."""
    connection = DeadServices()
    plan = SimpleNamespace(named=False, key=None, terms=None, credits_wei=1, order=lambda _: None)
    sweep = Sweep(connection, plan, [entry("a")], SweepLimits(1))  # type: ignore[arg-type]

    async def requested(orders: Any, *, approve: bool = True) -> list[int]:
        return [7]

    async def unreadable(job_ids: Any) -> None:
        raise ChainError("The node gave an answer that is no job.")

    connection.request_all, connection.jobs = requested, unreadable  # type: ignore[method-assign, attr-defined]
    with pytest.raises(ChainError):
        await sweep._send(sweep.entries)
    assert sweep._look_up


@pytest.fixture(autouse=True)
def noted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object) -> None: ...

    monkeypatch.setattr("deepgrid.client.sweep.driver.note", nothing)
