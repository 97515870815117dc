"""The live view of a job, which `dps submit --watch`, notebooks and the terminal app show."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from deepgrid.client import AsyncGrid, ClientSettings, JobEnd, JobEvent, JobStatus, LogLine, Remark, Step, ViewMessage
from deepgrid.errors import NotFound
from tests.appending import push_log
from tests.cli.live import EXAMPLE, Live, Wire
from tests.client.stage import Customer, Stage

S = JobStatus


async def test_events_tell_the_whole_life_in_order_and_end_with_the_bill(grid: AsyncGrid, stage: Stage) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    reading = asyncio.create_task(_collected(grid, job.id))
    await stage.operator.services.post_notice(job.id, "waiting", "no cluster is free")
    await stage.run(job)
    await push_log(stage.provider.services, job.id, 0, b"one\ntwo\n", final=True)
    await stage.provider.writer.settle(job.id, S.FINISHED, 1)
    async with asyncio.timeout(60):
        events = await reading
    steps = [event.status for event in events if isinstance(event, Step)]
    assert steps == [S.PENDING, S.META_SCHEDULED, S.SCHEDULED, S.RUNNING, S.FINISHED]
    assert [event.text for event in events if isinstance(event, LogLine)] == ["one", "two"]
    assert [(event.kind, event.author) for event in events if isinstance(event, Remark)] == [
        ("waiting", stage.operator.address)
    ]
    *_, finished, end = events
    assert isinstance(finished, Step)
    assert isinstance(end, JobEnd)
    assert end.exit_status == 0
    assert end.bill.cost + end.bill.refund == 100
    assert end.record.settlement is not None


async def _collected(grid: AsyncGrid, job_id: int) -> list[JobEvent]:
    return [event async for event in (await grid.job(job_id)).events()]


async def test_an_outage_of_node_and_services_is_told_once_and_passes(
    live: Live, customer: Customer, stage: Stage, tmp_path: Path
) -> None:
    book = live.address_book()
    async with Wire(book.rpc_url) as node, Wire(book.definitions_url) as services:
        changes = {"rpc_url": node.url, "definitions_url": services.url, "ws_url": None}
        file = book.model_copy(update=changes).save(tmp_path / "wired.json")
        settings = ClientSettings(patience_s=0, longest_pause_s=0.5)
        async with AsyncGrid(customer.key, file, settings=settings) as grid, asyncio.timeout(120):
            job = await grid.submit(EXAMPLE, credits=100)
            events = job.events()
            assert isinstance(await anext(events), Step)
            await asyncio.gather(node.cut(), services.cut())
            told = {(await _message(events)).text.partition(":")[0] for _ in range(2)}
            assert told == {"waiting for the chain", "The job's output cannot be read at the moment"}
            await asyncio.gather(node.mend(), services.mend())
            await stage.run(job)
            await push_log(stage.provider.services, job.id, 0, b"after\n", final=True)
            await stage.provider.writer.settle(job.id, S.FAILED, 1, "", 768)
            rest = [event async for event in events]
    assert [event for event in rest if isinstance(event, ViewMessage)] == []
    assert [event.text for event in rest if isinstance(event, LogLine)] == ["after"]
    assert isinstance(rest[-1], JobEnd)
    assert (job.status, job.exit_status) == (S.FAILED, 3)


async def _message(events: object) -> ViewMessage:
    async for event in events:  # type: ignore[attr-defined]
        if isinstance(event, ViewMessage):
            return event
    raise AssertionError("the view ended")


async def test_a_request_to_cancel_is_told_and_a_reader_without_a_key_sees_states_only(
    grid: AsyncGrid, stage: Stage, customer: Customer
) -> None:
    job = await grid.submit(EXAMPLE, credits=100)
    await stage.run(job)
    await job.cancel()
    assert "asked to stop it" in await job.after_cancel()
    assert job.last_transaction.startswith("0x")
    async with AsyncGrid.read_only(customer.book) as reader, asyncio.timeout(60):
        events = (await reader.job(job.id)).events()
        seen = [await anext(events) for _ in range(5)]
        assert [event.status for event in seen if isinstance(event, Step)][-1] is S.RUNNING
        assert [event.text for event in seen if isinstance(event, ViewMessage)] == ["cancellation was requested"]
        await stage.provider.writer.settle(job.id, S.CANCELLED, 1)
        assert isinstance([event async for event in events][-1], JobEnd)
        with pytest.raises(NotFound):
            await reader.job(999_999)
