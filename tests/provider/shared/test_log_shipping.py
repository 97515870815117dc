"""Output reaches the log service once, through outages and restarts. Gaps are marked, and no log delays another."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.errors import ServiceError
from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.shared.claim_journal import ClaimJournal
from deepgrid.provider.shared.log_shipping import LogShipper, LogShippingSettings
from deepgrid.services.messages import LogPosition
from deepgrid.slurm.cluster import OutputPage
from tests.provider.logs_support import Service

KEY = JobKey(1, "0x" + "ab" * 20, 7, 1_000)
QUICK = LogShippingSettings(poll_s=0.01, bytes_per_s=800)  # 8 bytes at once
WITHIN_S = 60.0


class Cluster:
    """A cluster with the output of jobs so far; None if it cannot be read."""

    def __init__(self, output: bytes = b"") -> None:
        self.output: bytes | None = output
        self.size: int | None = None  # if the reported size of the file is larger

    async def read_output_pages(self, offsets: Mapping[JobKey, int], limit: int) -> dict[JobKey, OutputPage]:
        output = self.output
        if output is None:
            return {}
        size = self.size or len(output)
        return {key: OutputPage(size, output[offset : offset + limit]) for key, offset in offsets.items()}


async def shipped(cluster: Cluster, service: Service, settings: LogShippingSettings = QUICK) -> None:
    """Ship the output of a job that is over, to its end."""
    async with LogShipper(cluster, service, settings) as shipper, asyncio.timeout(WITHIN_S):
        shipper.end(KEY)
        await shipper.until_idle()


async def test_everything_arrives_once_and_the_log_is_closed() -> None:
    cluster, service = Cluster(b"a line longer than one chunk\n"), Service()
    async with LogShipper(cluster, service, QUICK) as shipper:
        shipper.follow(KEY)
        assert cluster.output is not None
        cluster.output += b"the end\n"
        await shipper.finish(KEY)
    assert (service.log, service.closed, service.at.left_out) == (cluster.output, True, 0)


async def test_last_lines_of_the_supervisor_follow_the_output_and_close_the_log() -> None:
    cluster, service = Cluster(b"without a line end"), Service()
    async with LogShipper(cluster, service, QUICK) as shipper:
        shipper.follow(KEY)
        shipper.say(KEY, "first")
        shipper.say(KEY, "second")
        await shipper.finish(KEY)
    assert service.log.count(b"[deepgrid: ") == 2
    assert service.log.endswith(b"\n[deepgrid: second]\n")
    assert (service.closed, service.at.source) == (True, len(cluster.output or b""))


async def test_a_full_log_is_closed_without_last_lines() -> None:
    cluster, service = Cluster(b"x" * 40), Service(most=40)
    async with LogShipper(cluster, service, QUICK) as shipper:
        shipper.follow(KEY)
        shipper.say(KEY, "no room for it")
        await shipper.finish(KEY)
    assert service.closed
    assert b"no room" not in service.log


async def test_an_outage_of_the_service_delays_and_loses_nothing() -> None:
    cluster, service = Cluster(b"kept for later\n"), Service(outages=5)
    await shipped(cluster, service)
    assert (service.log, service.closed, service.outages) == (cluster.output, True, 0)


async def test_a_restarted_supervisor_repeats_nothing() -> None:
    cluster, service = Cluster(b"before the crash, and after it\n"), Service()
    service.log, service.at = bytearray(b"before the crash,"), LogPosition(17, 17)
    await shipped(cluster, service)
    assert service.log == cluster.output


async def test_a_dead_service_does_not_delay_the_carrier_and_gets_the_log_later() -> None:
    cluster, service = Cluster(b"delivered late\n"), Service(outages=1_000_000)
    async with LogShipper(cluster, service, replace(QUICK, drain_s=0.05)) as shipper, asyncio.timeout(WITHIN_S):
        shipper.follow(KEY)
        await shipper.finish(KEY)
        assert (service.log, service.closed) == (b"", False)
        service.outages = 0
        await shipper.until_idle()
    assert (service.log, service.closed) == (cluster.output, True)


async def test_head_and_tail_of_a_large_output_are_kept_and_the_gap_is_counted() -> None:
    output = b"".join(b"line %07d\n" % number for number in range(10_000))
    cluster, service = Cluster(output), Service()
    settings = replace(QUICK, bytes_per_s=400_000, max_bytes_per_job=20_000)
    await shipped(cluster, service, settings)
    head, line, tail = bytes(service.log).partition(b"\n[deepgrid: ")
    count, _, tail = tail.partition(b" bytes of output are left out here]\n")
    assert line and output.startswith(head) and output.endswith(tail)
    assert len(head) == 18_976 * 3 // 4 and len(tail) > 4_000
    assert int(count.replace(b",", b"")) == service.at.left_out == len(output) - len(head) - len(tail)
    assert (service.closed, len(service.log) <= 20_000) == (True, True)


async def test_a_log_with_a_full_head_says_that_it_waits_and_goes_on_after_the_job() -> None:
    cluster, service = Cluster(b"x" * 6_000), Service()
    settings = replace(QUICK, bytes_per_s=100_000, max_bytes_per_job=8_000)
    head = (8_000 - 1_024) * 3 // 4
    async with LogShipper(cluster, service, settings) as shipper, asyncio.timeout(WITHIN_S):
        shipper.follow(KEY)
        while b"head of the log is full" not in service.log:
            await asyncio.sleep(0.01)
        waiting = len(service.log)
        cluster.output = b"x" * 6_000 + b"y" * 6_000 + b"z" * 50
        await shipper.finish(KEY)
    assert service.log[:head] == b"x" * head and service.log.endswith(b"z" * 50)
    assert service.closed and service.log[waiting:].count(b"bytes of output are left out here") == 1
    assert service.log.count(b"head of the log is full") == 1


async def test_a_line_of_the_supervisor_is_in_the_log_once_and_loses_no_output() -> None:
    cluster, service = Cluster(b"a line\nhalf of "), Service(outages=3)
    async with LogShipper(cluster, service, QUICK) as shipper, asyncio.timeout(WITHIN_S):
        shipper.say(KEY, "it is not followed yet")
        shipper.follow(KEY)
        while not service.log.endswith(b"half of "):
            await asyncio.sleep(0.01)
        service.outages = 2
        shipper.say(KEY, "the bought time ends soon")
        while b"ends soon" not in service.log:
            await asyncio.sleep(0.01)
        assert cluster.output is not None
        cluster.output += b"a line\n"
        await shipper.finish(KEY)
    assert service.log == b"a line\nhalf of \n[deepgrid: the bought time ends soon]\na line\n"
    assert (service.closed, service.at.source, service.at.left_out) == (True, len(cluster.output), 0)


async def test_the_limit_of_the_service_counts_too() -> None:
    cluster, service = Cluster(b"x" * 100_000), Service(most=4_000)
    await shipped(cluster, service, replace(QUICK, bytes_per_s=100_000))
    assert service.closed and len(service.log) <= 4_000
    assert service.at.source == 100_000


async def test_a_journal_keeps_what_is_not_delivered_for_the_next_process(tmp_path: Path) -> None:
    cluster, service, file = (
        Cluster(b"a long output of a job that is over\n"),
        Service(outages=10**6),
        tmp_path / "logs",
    )
    async with LogShipper(cluster, service, QUICK, ClaimJournal(file, KEY)) as shipper, asyncio.timeout(WITHIN_S):
        shipper.end(KEY)
        while KEY not in set(ClaimJournal(file, KEY)):
            await asyncio.sleep(0.01)
    service.outages = 0
    async with LogShipper(cluster, service, QUICK, ClaimJournal(file, KEY)) as later, asyncio.timeout(WITHIN_S):
        assert later.undelivered == {KEY}
        later.end(KEY)
        await later.until_idle()
        while KEY in set(ClaimJournal(file, KEY)):
            await asyncio.sleep(0.01)
    assert (service.log, service.closed) == (cluster.output, True)


async def test_an_output_that_cannot_be_read_any_more_leaves_the_log_open(caplog: pytest.LogCaptureFixture) -> None:
    cluster, service = Cluster(b"read\n"), Service()
    async with LogShipper(cluster, service, replace(QUICK, unreadable_s=0.1)) as shipper, asyncio.timeout(WITHIN_S):
        shipper.follow(KEY)
        while service.log != b"read\n":
            await asyncio.sleep(0.01)
        cluster.output = None
        shipper.end(KEY)
        await shipper.until_idle()
    assert not service.closed
    assert "cannot be read any more" in caplog.text


@pytest.mark.parametrize("size", [3, 5_000])
async def test_an_output_that_shrank_or_gives_no_bytes_leaves_the_log_open(size: int) -> None:
    cluster, service = Cluster(b"12345678"), Service()
    async with LogShipper(cluster, service, replace(QUICK, unreadable_s=0.1)) as shipper, asyncio.timeout(WITHIN_S):
        shipper.follow(KEY)
        while service.log != b"12345678":
            await asyncio.sleep(0.01)
        cluster.size = size
        shipper.end(KEY)
        await shipper.until_idle()
    assert (service.closed, service.log) == (False, b"12345678")


async def test_logs_do_not_wait_for_one_another() -> None:
    strange, slow = replace(KEY, job_id=8), replace(KEY, job_id=9)
    cluster, service, asked, closed = Cluster(b"a first line\n"), Service(), asyncio.Event(), asyncio.Event()

    class Sink:
        async def ship_log(
            self, job_id: int, claimed_at: int, at: LogPosition, data: bytes, after: LogPosition, *,
            pending: int, final: bool,
        ) -> LogPosition:  # fmt: skip
            if job_id == strange.job_id:
                raise ZeroDivisionError
            if job_id == slow.job_id:
                asked.set()
                await closed.wait()
                return after
            return await service.ship_log(job_id, claimed_at, at, data, after, pending=pending, final=final)

    async with LogShipper(cluster, Sink(), QUICK) as shipper:
        shipper.follow(slow)
        shipper.follow(strange)
        await asked.wait()
        shipper.follow(KEY)  # while the slow one's push is under way
        cluster.output = b"a first line\nthe end\n"
        await shipper.finish(KEY)
        assert (service.log, service.closed) == (cluster.output, True)
        closed.set()
        await shipper.finish(slow)


async def test_a_log_that_the_service_refuses_is_given_up() -> None:
    class Sink(Service):
        async def ship_log(self, *_: object, **__: object) -> LogPosition:  # type: ignore[override]
            raise ServiceError("The log service refused.", transient=False)

    await shipped(Cluster(b"never accepted\n"), Sink())
