"""Two supervisors of one provider, with one key, on one cluster."""

from __future__ import annotations

import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.chaos.fault import Fault
from tests.chaos.round import pause
from tests.chaos.world import World

BESIDE_S = 5.0


@asynccontextmanager
async def beside(world: World, rng: random.Random) -> AsyncIterator[None]:
    """A second supervisor is started by mistake and stopped after a while."""
    second = world.second_supervisor()
    second.start()
    try:
        yield
        await pause(rng, BESIDE_S)
    finally:
        await second.kill(rng.choice((signal.SIGKILL, signal.SIGTERM)))


@asynccontextmanager
async def taking_over(world: World, rng: random.Random) -> AsyncIterator[None]:
    """The first is killed and the second leads. The first stands by and leads again when the second is killed."""
    second = world.second_supervisor()
    second.start()
    try:
        await pause(rng, BESIDE_S)
        await world.supervisor.kill()
        yield
        await pause(rng, BESIDE_S)
        world.supervisor.start()
        await pause(rng, BESIDE_S)
    finally:
        await second.kill()
        world.supervisor.start()


@asynccontextmanager
async def frozen(world: World, rng: random.Random) -> AsyncIterator[None]:
    """The first is suspended and a second takes over. The first wakes up and believes that it still leads."""
    second = world.second_supervisor()
    second.start()
    await pause(rng, BESIDE_S)
    world.supervisor.send(signal.SIGSTOP)
    try:
        yield
        await pause(rng, 4 * BESIDE_S)
    finally:
        world.supervisor.send(signal.SIGCONT)
        await pause(rng, BESIDE_S)
        await second.kill()
        world.supervisor.start()


FAULTS = [
    Fault("two supervisors at once", beside),
    Fault("a second supervisor takes over", taking_over),
    Fault("a supervisor sleeps while a second takes over", frozen),
]
