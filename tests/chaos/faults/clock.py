"""Clocks jump by an hour: the supervisor's, forwards and backwards, and the chain's."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from tests.chaos.fault import Allowed, Fault
from tests.chaos.node import NodeKeeper
from tests.chaos.world import World

HOUR_S = 3600
LIBRARIES = "*/faketime/libfaketimeMT.so.1"  # from the Debian package faketime, by architecture


class SetClock:
    """The wall clock of processes that start with `environment`. Their monotonic clock is unchanged."""

    def __init__(self, world: World) -> None:
        self._file = world.grid.state / "chaos" / "clock"
        self.set(0)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(next(Path("/usr/lib").glob(LIBRARIES))),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }

    def set(self, ahead_s: int) -> None:
        """Set how far it is ahead. This takes effect within a second."""
        draft = self._file.with_suffix(".draft")
        draft.write_text(f"{ahead_s:+d}\n")
        draft.rename(self._file)


@asynccontextmanager
async def supervisors_clock_jumps(jumps: Sequence[int], world: World, rng: random.Random) -> AsyncIterator[None]:
    """The supervisor's clock is off by each value in turn and then right again, in one process."""
    clock = SetClock(world)
    await world.supervisor.kill()
    world.supervisor.start(clock.environment)
    try:
        yield
        for ahead_s in jumps:
            await asyncio.sleep(rng.uniform(2, 10))
            clock.set(ahead_s)
        await asyncio.sleep(rng.uniform(5, 20))
    finally:
        clock.set(0)


@asynccontextmanager
async def supervisor_starts_with_a_wrong_clock(ahead_s: int, world: World, rng: random.Random) -> AsyncIterator[None]:
    """The clock is off when the supervisor starts and adopts, and right after the next start."""
    clock = SetClock(world)
    await world.supervisor.kill()
    clock.set(ahead_s)
    world.supervisor.start(clock.environment)
    try:
        yield
        await asyncio.sleep(rng.uniform(10, 30))
    finally:
        await world.supervisor.kill()
        clock.set(0)
        world.supervisor.start()


@asynccontextmanager
async def chains_clock_jumps(world: World, rng: random.Random) -> AsyncIterator[None]:
    """Unclaimed jobs are overdue at once. The chain stays ahead, because its clock never goes back."""
    node = NodeKeeper(world)
    yield
    await asyncio.sleep(rng.uniform(0, 8))
    await node.jump(HOUR_S)


FAULTS = [
    Fault("supervisor's clock an hour ahead", partial(supervisors_clock_jumps, [HOUR_S])),
    Fault("supervisor's clock an hour behind", partial(supervisors_clock_jumps, [-HOUR_S])),
    Fault("supervisor's clock to and fro", partial(supervisors_clock_jumps, [HOUR_S, -HOUR_S, 0, HOUR_S, -HOUR_S])),
    Fault("supervisor starts an hour ahead", partial(supervisor_starts_with_a_wrong_clock, HOUR_S)),
    Fault("supervisor starts an hour behind", partial(supervisor_starts_with_a_wrong_clock, -HOUR_S)),
    Fault("chain's clock an hour ahead", chains_clock_jumps, allows=frozenset({Allowed.REFUSED})),
]
