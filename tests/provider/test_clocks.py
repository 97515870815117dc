"""A clock that jumps by an hour shortens no grace period, and adds or loses no minute."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from deepgrid.lifecycle.actions import Awaited, ReportRunning, Wait
from deepgrid.lifecycle.decide import decide
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.provider.claims.carrier import carry
from deepgrid.provider.zombies import look_again, look_for_zombies
from tests.provider.claims import in_queue, running
from tests.provider.scene import Scene
from tests.slurm.losing import lose
from tests.slurm.support import SMALL, Box, bash
from tests.waiting import until

HOUR_S = 3600

Jump = Callable[[int], None]


@pytest.fixture
def jump(monkeypatch: pytest.MonkeyPatch) -> Jump:
    """Sets the clock of this process ahead of the machine's clock, in seconds."""
    clock = time.time

    def ahead(seconds: int) -> None:
        monkeypatch.setattr(time, "time", lambda: clock() + seconds)

    return ahead


@pytest.mark.parametrize("hour", [HOUR_S, -HOUR_S])
async def test_a_start_is_dated_back_by_the_clusters_own_clock(
    approved: Scene,
    box: Box,
    jump: Jump,
    hour: int,
) -> None:
    """With this machine's clock, the job would have run an hour too long, or not at all."""
    key = await approved.claimed()
    await approved.session.cluster.submit(key, bash("true"), SMALL)
    await until(lambda: not in_queue(box, key))
    jump(hour)
    async with carry(approved.session, key) as carrier:
        seen = await carrier.observe()
    assert seen.slurm.phase is Phase.ENDED
    assert seen.slurm.started_at is not None
    assert decide(seen) == ReportRunning(-(-(seen.now - seen.slurm.started_at) // 60) or 1)
    assert 0 <= seen.now - seen.slurm.started_at < HOUR_S / 2


async def test_a_clock_one_hour_ahead_proves_no_absence(approved: Scene, box: Box, jump: Jump) -> None:
    session = approved.session
    key = await running(approved, box)
    lose(box.site, box.name, key)
    async with carry(session, key) as carrier:
        assert decide(await carrier.observe()) == Wait(Awaited.TRACE)
        found = await look_for_zombies(session)
        jump(HOUR_S)
        assert decide(await carrier.observe()) == Wait(Awaited.TRACE)
        assert await look_again(session, found.suspects, grace_s=600) == []
