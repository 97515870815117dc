"""Output reaches the log service once and whole, through outages and restarts; and never holds up the end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from deepgrid.errors import ServiceError
from deepgrid.lifecycle.job import JobKey
from deepgrid.roles import logs
from deepgrid.roles.logs import LogShipper

KEY = JobKey(1, "0x" + "ab" * 20, 7, 1_000)


class Cluster:
    """What jobs wrote so far."""

    def __init__(self) -> None:
        self.output = b""

    async def read_output(self, offsets: Mapping[JobKey, int], limit: int) -> dict[JobKey, bytes]:
        found = {key: self.output[offset : offset + limit] for key, offset in offsets.items()}
        return {key: data for key, data in found.items() if data}


class Service:
    """Keeps a log by offset as the log service does; out of order for the first `outages` calls."""

    def __init__(self, outages: int = 0) -> None:
        self.log = b""
        self.closed = False
        self.outages = outages

    async def push_log(self, job_id: int, offset: int, data: bytes, *, final: bool = False) -> int:
        assert job_id == KEY.job_id
        if self.outages:
            self.outages -= 1
            raise ServiceError("The log service is away.")
        if offset <= len(self.log):
            self.log += data[len(self.log) - offset :]
            self.closed = self.closed or final
        return len(self.log)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "POLL_S", 0.01)
    monkeypatch.setattr(logs, "CHUNK_BYTES", 8)


async def test_everything_arrives_once_and_the_log_is_closed() -> None:
    cluster, service = Cluster(), Service()
    cluster.output = b"a line longer than one chunk\n"
    async with LogShipper(cluster, service) as shipper:
        shipper.follow(KEY)
        cluster.output += b"the end\n"
        await shipper.finish(KEY)
    assert (service.log, service.closed) == (cluster.output, True)


async def test_an_outage_of_the_service_delays_and_loses_nothing() -> None:
    cluster, service = Cluster(), Service(outages=5)
    cluster.output = b"kept for later\n"
    async with LogShipper(cluster, service) as shipper:
        shipper.follow(KEY)
        await shipper.finish(KEY)
    assert (service.log, service.closed, service.outages) == (cluster.output, True, 0)


async def test_a_restarted_supervisor_repeats_nothing() -> None:
    cluster, service = Cluster(), Service()
    cluster.output = b"before the crash, and after it\n"
    service.log = cluster.output[:17]
    async with LogShipper(cluster, service) as shipper:
        shipper.follow(KEY)
        await shipper.finish(KEY)
    assert service.log == cluster.output


async def test_a_dead_service_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "DRAIN_S", 0.05)
    cluster, service = Cluster(), Service(outages=1_000_000)
    cluster.output = b"never delivered\n"
    async with LogShipper(cluster, service) as shipper:
        shipper.follow(KEY)
        await shipper.finish(KEY)
    assert service.log == b""


async def test_logs_do_not_wait_for_one_another() -> None:
    strange, slow = replace(KEY, job_id=8), replace(KEY, job_id=9)
    cluster, service, closed = Cluster(), Service(), asyncio.Event()

    class Sink:
        async def push_log(self, job_id: int, offset: int, data: bytes, *, final: bool = False) -> int:
            if job_id == strange.job_id:
                raise ZeroDivisionError
            if job_id == slow.job_id:
                await closed.wait()
                return offset
            return await service.push_log(job_id, offset, data, final=final)

    cluster.output = b"done\n"
    async with LogShipper(cluster, Sink()) as shipper:
        for key in (slow, strange, KEY):
            shipper.follow(key)
        await shipper.finish(KEY)
        closed.set()
    assert (service.log, service.closed) == (cluster.output, True)
