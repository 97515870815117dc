"""Output reaches the log service once and completely, through outages and restarts, and never delays a settlement."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from deepgrid.errors import ServiceError
from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.log_shipping import LogShipper, LogShippingSettings

KEY = JobKey(1, "0x" + "ab" * 20, 7, 1_000)
QUICK = LogShippingSettings(poll_s=0.01, chunk_bytes=8)


class Cluster:
    """A cluster with the output of jobs so far."""

    def __init__(self) -> None:
        self.output = b""

    async def read_output(self, offsets: Mapping[JobKey, int], limit: int) -> dict[JobKey, bytes]:
        found = {key: self.output[offset : offset + limit] for key, offset in offsets.items()}
        return {key: data for key, data in found.items() if data}


class Service:
    """Keeps a log by offset, as the log service does. The first `outages` calls fail."""

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


async def test_everything_arrives_once_and_the_log_is_closed() -> None:
    cluster, service = Cluster(), Service()
    cluster.output = b"a line longer than one chunk\n"
    async with LogShipper(cluster, service, QUICK) as shipper:
        shipper.follow(KEY)
        cluster.output += b"the end\n"
        await shipper.finish(KEY)
    assert (service.log, service.closed) == (cluster.output, True)


async def test_an_outage_of_the_service_delays_and_loses_nothing() -> None:
    cluster, service = Cluster(), Service(outages=5)
    cluster.output = b"kept for later\n"
    async with LogShipper(cluster, service, QUICK) as shipper:
        shipper.follow(KEY)
        await shipper.finish(KEY)
    assert (service.log, service.closed, service.outages) == (cluster.output, True, 0)


async def test_a_restarted_supervisor_repeats_nothing() -> None:
    cluster, service = Cluster(), Service()
    cluster.output = b"before the crash, and after it\n"
    service.log = cluster.output[:17]
    async with LogShipper(cluster, service, QUICK) as shipper:
        shipper.follow(KEY)
        await shipper.finish(KEY)
    assert service.log == cluster.output


async def test_a_dead_service_does_not_delay_the_end() -> None:
    cluster, service = Cluster(), Service(outages=1_000_000)
    cluster.output = b"never delivered\n"
    async with LogShipper(cluster, service, replace(QUICK, drain_s=0.05)) as shipper:
        shipper.follow(KEY)
        await shipper.finish(KEY)
    assert service.log == b""


async def test_logs_do_not_wait_for_one_another() -> None:
    strange, slow = replace(KEY, job_id=8), replace(KEY, job_id=9)
    cluster, service, asked, closed = Cluster(), Service(), asyncio.Event(), asyncio.Event()

    class Sink:
        async def push_log(self, job_id: int, offset: int, data: bytes, *, final: bool = False) -> int:
            if job_id == strange.job_id:
                raise ZeroDivisionError
            if job_id == slow.job_id:
                asked.set()
                await closed.wait()
                return offset + len(data)
            return await service.push_log(job_id, offset, data, final=final)

    cluster.output = b"a first line\n"
    async with LogShipper(cluster, Sink(), QUICK) as shipper:
        shipper.follow(slow)
        shipper.follow(strange)
        await asked.wait()
        shipper.follow(KEY)  # while the slow one's push is under way
        cluster.output += b"the end\n"
        await shipper.finish(KEY)
        assert (service.log, service.closed) == (cluster.output, True)
        closed.set()
        await shipper.finish(slow)


async def test_no_output_is_pushed_a_second_time_while_its_push_is_under_way() -> None:
    cluster, pushed, gate = Cluster(), [], asyncio.Event()
    looks = 0

    class Reader:
        async def read_output(self, offsets: Mapping[JobKey, int], limit: int) -> dict[JobKey, bytes]:
            nonlocal looks
            looks += 1
            return await cluster.read_output(offsets, limit)

    class Sink:
        async def push_log(self, job_id: int, offset: int, data: bytes, *, final: bool = False) -> int:
            if job_id == KEY.job_id:
                pushed.append((offset, data))
                await gate.wait()
            return offset + len(data)

    cluster.output = b"once\n"
    other = replace(KEY, job_id=8)
    async with LogShipper(Reader(), Sink(), QUICK) as shipper:
        shipper.follow(KEY)
        shipper.follow(other)
        while looks < 5:  # of the other job's output
            await asyncio.sleep(0)
        gate.set()
        await shipper.finish(KEY)
    assert pushed[0] == (0, b"once\n")
    assert [offset for offset, _ in pushed] == [0, 5]
