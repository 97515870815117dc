"""The supervisor's limits of sessions, with smaller figures, on a real Slurm."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest

from deepgrid.client.tunnel.job_tunnel import SessionLost
from deepgrid.errors import ServiceError
from deepgrid.provider.tunnels.served_tunnel import TunnelBounds
from deepgrid.provider.tunnels.tunnel_host import TunnelSettings
from deepgrid.services.admission.limits import Rate
from deepgrid.services.tunnels.tunnel_frames import StreamRequest
from tests.provider.tunnels.tunnel_support import WITHIN_S, LiveGrid, live_grid, opened, until_true
from tests.slurm.support import Box

Start = Callable[[TunnelSettings], AbstractAsyncContextManager[LiveGrid]]


@pytest.fixture
def start(box: Box, tmp_path: Path) -> Start:
    """Start the grid with these limits."""
    return partial(live_grid, box, tmp_path)


async def test_a_session_without_a_byte_ends_and_a_busy_one_stays(start: Start) -> None:
    async with start(TunnelSettings(bounds=TunnelBounds(idle_s=2.0))) as grid:
        job = grid.at(await grid.running_job())
        async with await opened(job) as idle, await opened(job) as busy:
            await idle.stream(StreamRequest(kind="exec", command=("sleep", "600")))
            ticking = "while sleep 0.2; do echo tick; done"
            ticks = await busy.stream(StreamRequest(kind="exec", command=("sh", "-c", ticking)))
            with pytest.raises(SessionLost, match="it was idle"):
                async with asyncio.timeout(WITHIN_S):
                    await idle.until_lost()
            assert await ticks.read() is not None
            assert len(grid.host.tunnels) == 1


async def test_bytes_pass_at_the_rate_of_a_session_in_both_directions(start: Start) -> None:
    """Ten bursts need the time of nine, less what a timer may be early.

    The command ends long before. What stayed in its pipe while the window was closed was lost once.
    """
    burst, per_s = 32 * 1024, 64 * 1024
    async with start(TunnelSettings(bounds=TunnelBounds(bytes_per_s=per_s, burst_bytes=burst))) as grid:
        job = grid.at(await grid.running_job())
        for command, data in (("cat > /dev/null", bytes(10 * burst)), (f"head -c {10 * burst} /dev/zero", b"")):
            began = time.monotonic()
            done = await job.exec(command, input=data)
            assert (done.status, len(done.stdout)) == (0, 0 if data else 10 * burst)
            assert time.monotonic() - began > 0.95 * 9 * burst / per_s


async def test_sessions_of_a_customer_are_bounded_over_all_its_jobs(start: Start) -> None:
    async with start(TunnelSettings(per_customer=2)) as grid:
        one, other = grid.at(await grid.running_job()), grid.at(await grid.running_job())
        rivals = grid.at(await grid.running_job(customer="rival"), "rival")
        first, second = await opened(one), await opened(other)
        with pytest.raises(ServiceError, match="end one of yours"):
            await opened(one)
        assert (await rivals.exec(["true"])).status == 0
        await first.close()
        await until_true(lambda: len(grid.host.tunnels) == 1, "the session stays")
        assert (await one.exec(["true"])).status == 0
        await second.close()


async def test_a_customer_opens_sessions_at_a_limited_rate(start: Start) -> None:
    async with start(TunnelSettings(openings=Rate(0.001, 2))) as grid:
        job = grid.at(await grid.running_job())
        rivals = grid.at(await grid.running_job(customer="rival"), "rival")
        for _ in range(2):
            assert (await job.exec(["true"])).status == 0
        with pytest.raises(ServiceError, match="too many sessions were opened"):
            await job.exec(["true"])
        assert (await rivals.exec(["true"])).status == 0
