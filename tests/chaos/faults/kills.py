"""The supervisor is killed with SIGKILL at a named point of its work and started again."""

from __future__ import annotations

import random
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from tests.chaos.fault import Fault
from tests.chaos.points import PLACES
from tests.chaos.process import NotReached
from tests.chaos.world import World

# Kinds of jobs that always reach a point. There are as many as arrivals that may be awaited.
NEEDS = dict.fromkeys(("extension", "look at a top-up"), ("topped up",))
NEEDS |= dict.fromkeys(("cancel at Slurm", "look at a cancel request"), ("cancelled",))
NEEDS |= dict.fromkeys(("start of the run", "fetch", "sbatch"), ("instant", "held"))
NEEDS |= dict.fromkeys(("RUNNING report", "taking over"), ("held", "held"))
NEEDS |= dict.fromkeys(("settlement", "acknowledge"), ("instant", "instant"))
ONCE = (  # a batch
    "claim", "start of the run", "sent", "extension", "look at a top-up", "cancel at Slurm", "look at a cancel request",
)  # fmt: skip
AT_START = ("taking over", "tidying")
AT_START_WITHIN_S = 30.0
REACHED_WITHIN_S = 300.0  # a loaded machine needs minutes between the request of a job and its extension


@asynccontextmanager
async def killed(place: str, world: World, rng: random.Random) -> AsyncIterator[None]:
    """Kill the supervisor when it reaches `place`, and start it again at once."""
    known = await world.chain.job_count()
    world.supervisor.arm(place, 1 if place.endswith(ONCE) else rng.choice((1, 2)))
    try:
        yield
        await _reached(place, world, known)
    finally:
        world.supervisor.disarm()
        world.supervisor.start()


@asynccontextmanager
async def killed_at_start(place: str, world: World, _rng: random.Random) -> AsyncIterator[None]:
    """Kill the supervisor, start it, kill it again during its start, and start it again.

    Without a claimed job at the first kill there is nothing to take over. Then some of the new jobs are held, and the
    supervisor is killed once more.
    """
    known = await world.chain.job_count()
    await world.supervisor.kill()
    world.supervisor.arm(place)
    world.supervisor.start()
    try:
        yield
        if not await world.supervisor.gone(AT_START_WITHIN_S):
            await world.supervisor.kill()
            world.supervisor.start()
            await _reached(place, world, known)
    finally:
        world.supervisor.disarm()
        world.supervisor.start()


async def _reached(place: str, world: World, known: int) -> None:
    """Wait until the supervisor died at `place`. `known` is the number of jobs before the fault."""
    if not await world.supervisor.gone(REACHED_WITHIN_S):
        jobs = await world.chain.jobs(list(range(known + 1, await world.chain.job_count() + 1)))
        states = ", ".join(f"job {job.id} ({job.name}) is {job.status.words}" for job in jobs)
        raise NotReached(f"the supervisor never reached: {place}; {states}")


def _fault(place: str) -> Fault:
    name = re.sub("^(before|after|intent of|answer of) | sent$", "", place)
    at_start = name in AT_START
    inject = partial(killed_at_start if at_start else killed, place)
    return Fault(f"killed {place}", inject, NEEDS.get(name, ()), awaited=not at_start)


FAULTS = [_fault(place) for place in PLACES]
