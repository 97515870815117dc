"""Commands of a cluster's administrator that affect the grid's jobs, on purpose or not."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from tests.chaos.administration import Administrator, lasting, outage, repaired, something_new
from tests.chaos.fault import Allowed, Fault
from tests.chaos.world import World


@asynccontextmanager
async def partition(state: str, world: World, _rng: random.Random) -> AsyncIterator[None]:
    """A partition changes its state: DOWN accepts jobs and starts none, DRAIN the reverse, INACTIVE neither."""
    cluster = Administrator.of(world)
    name = f"PartitionName={cluster.settings.partition}"
    await cluster.ask("scontrol", "update", name, f"State={state}")
    try:
        yield
    finally:
        await cluster.ask("scontrol", "update", name, "State=UP")


@asynccontextmanager
async def nodes(state: str, world: World, _rng: random.Random) -> AsyncIterator[None]:
    """Drained nodes finish their jobs. Nodes set to DOWN kill them, and the jobs fail with their node."""
    cluster = Administrator.of(world)
    names = f"NodeName={','.join(cluster.nodes)}"
    await cluster.ask("scontrol", "update", names, f"State={state}", "Reason=maintenance")
    async with repaired(cluster):
        yield


@asynccontextmanager
async def cancelled(world: World, rng: random.Random) -> AsyncIterator[None]:
    """Some waiting and running jobs are cancelled by the administrator."""
    cluster = Administrator.of(world)
    await something_new(cluster.queued)
    await cluster.ask("scancel", *_some(rng, await asyncio.to_thread(cluster.queued)), check=False)
    yield


@asynccontextmanager
async def held(world: World, rng: random.Random) -> AsyncIterator[None]:
    """Waiting jobs are held for a while."""
    cluster = Administrator.of(world)
    async with outage(partial(partition, "DOWN"), 2, 8)(world, rng):
        await something_new(cluster.queued)
        waiting = _some(rng, await asyncio.to_thread(cluster.queued))
        await cluster.ask("scontrol", "hold", ",".join(waiting), check=False)
        yield
    await lasting(rng, 0, 3)
    await cluster.ask("scontrol", "release", ",".join(waiting), check=False)


@asynccontextmanager
async def requeued(world: World, rng: random.Random) -> AsyncIterator[None]:
    """Some running jobs are requeued, although they have --no-requeue."""
    cluster = Administrator.of(world)
    await something_new(cluster.queued)
    for slurm_id in _some(rng, await asyncio.to_thread(cluster.queued)):
        await cluster.ask("scontrol", "update", f"JobId={slurm_id}", "Requeue=1", check=False)
        await cluster.ask("scontrol", "requeue", slurm_id, check=False)
    yield


@asynccontextmanager
async def suspended(world: World, rng: random.Random) -> AsyncIterator[None]:
    """Running jobs are suspended for a while."""
    cluster = Administrator.of(world)
    await something_new(cluster.queued)
    running = _some(rng, await asyncio.to_thread(cluster.queued))
    await cluster.ask("scontrol", "suspend", ",".join(running), check=False)
    yield
    await lasting(rng, 1, 5)
    await cluster.ask("scontrol", "resume", ",".join(running), check=False)


def _some(rng: random.Random, slurm_ids: set[str]) -> list[str]:
    ordered = sorted(slurm_ids, key=int)
    return rng.sample(ordered, (len(ordered) + 1) // 2)


REQUEUED = frozenset({Allowed.REQUEUED})
REFUSED = frozenset({Allowed.REFUSED})
NODE = frozenset({Allowed.FAULT, Allowed.REFUSED})
FAULTS = [
    Fault("partition down", outage(partial(partition, "DOWN"), 2, 8)),
    Fault("partition drained", outage(partial(partition, "DRAIN"), 2, 8), allows=REFUSED),
    Fault("partition inactive", outage(partial(partition, "INACTIVE"), 2, 8), allows=REFUSED),
    Fault("nodes drained", outage(partial(nodes, "DRAIN"), 2, 6)),
    Fault("nodes set down", outage(partial(nodes, "DOWN"), 2, 6), allows=NODE),
    Fault("jobs cancelled by the administrator", cancelled, allows=frozenset({Allowed.ENDED, Allowed.REFUSED})),
    Fault("jobs held by the administrator", held),
    Fault("jobs requeued by the administrator", requeued, allows=REQUEUED),
    Fault("jobs suspended by the administrator", suspended),
]
