"""A job writes faster than its output is delivered, on a real cluster, over SSH, to a real log service."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.shared.claim_journal import ClaimJournal
from deepgrid.provider.shared.log_shipping import LogShipper, LogShippingSettings
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests.services.support import Grid, starting
from tests.slurm.support import SMALL, bash, ended

MIB = 2**20
LINE_BYTES = 1024
QUICK = LogShippingSettings(poll_s=0.1, bytes_per_s=8 * MIB)


def numbered(lines: int) -> str:
    """Return a script that writes this many lines of 1 KiB, each with its number."""
    return f"seq -f '%1023.0f' 1 {lines}"


async def whole_log(grid: Grid, job_id: int) -> tuple[bytes, int]:
    """Return the log that its customer reads to the end, and the count of bytes that are left out."""
    found, offset = bytearray(), 0
    while True:
        chunk = await grid.customer.read_log(job_id, offset, wait_s=20)
        found += chunk.data
        offset = chunk.next_offset
        if chunk.final:
            assert chunk.closed, "the provider says that this is all"
            return bytes(found), chunk.left_out


def check(log: bytes, left_out: int, lines: int) -> None:
    """Check that every byte of the output is in the log, or counted where it is missing."""
    log = re.sub(rb"\n\[deepgrid: the head of the log is full[^\n]*\]\n", b"", log)  # if the job was still running
    head, _, tail = log.partition(b"[deepgrid: ")
    said, _, tail = tail.partition(b" bytes of output are left out here]\n")
    assert int(said.replace(b",", b"")) == left_out
    first = [int(line) for line in head.split(b"\n")[:-1] if len(line) == LINE_BYTES - 1]
    last = [int(line) for line in tail.split(b"\n")[:-1] if len(line) == LINE_BYTES - 1]
    assert first == list(range(1, len(first) + 1)), "the head is complete"
    assert last == list(range(lines - len(last) + 1, lines + 1)), "the tail is complete"
    assert len(head.removesuffix(b"\n")) + left_out + len(tail) == lines * LINE_BYTES


async def deliver(
    cluster: Cluster,
    monitor: SlurmMonitor,
    key: JobKey,
    folder: Path,
    mib: int,
    settings: LogShippingSettings,
    kept: int,
) -> None:
    lines = mib * MIB // LINE_BYTES
    journal = folder / "logs.json"
    async with starting(folder) as start:
        grid = await start(max_log_bytes=kept)
        grid.chain.put(key.job_id, "ab" * 32, JobStatus.RUNNING, claimed_at=key.claimed_at)
        await cluster.submit(key, bash(numbered(lines)), SMALL)
        async with LogShipper(cluster, grid.provider, settings, ClaimJournal(journal, key)) as shipper:
            shipper.follow(key)
            assert (await ended(monitor, key)).state == "COMPLETED"
            grid.chain.put(
                key.job_id, "ab" * 32, JobStatus.FINISHED, claimed_at=key.claimed_at, ended_at=int(time.time())
            )
            while key not in set(ClaimJournal(journal, key)):
                await asyncio.sleep(0.05)
        # The supervisor stops here, and the next one finds the claim in its journal.
        async with LogShipper(cluster, grid.provider, settings, ClaimJournal(journal, key)) as shipper:
            assert shipper.undelivered == {key}
            shipper.end(key)
            log, left_out = await whole_log(grid, key.job_id)
            await shipper.until_idle()
        assert kept * 0.99 < len(log) <= kept
        check(log, left_out, lines)


@pytest.mark.long
async def test_100_mb_written_at_once_are_delivered_or_counted(
    cluster: Cluster, monitor: SlurmMonitor, key: JobKey, tmp_path: Path
) -> None:
    await deliver(cluster, monitor, key, tmp_path, 100, QUICK, 8 * MIB)


@pytest.mark.deep
@pytest.mark.timeout(1800)
async def test_1_gb_written_at_once_is_delivered_or_counted_at_the_default_rate(
    cluster: Cluster, monitor: SlurmMonitor, key: JobKey, tmp_path: Path
) -> None:
    await deliver(cluster, monitor, key, tmp_path, 1000, LogShippingSettings(), 64 * MIB)
