"""What a cluster's administrator does to the grid's jobs, knowingly or not."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.chaos.administration import Administrator, lasting, something_new
from tests.chaos.fault import Allowed, Fault
from tests.chaos.world import World


@asynccontextmanager
async def _partition(world: World, rng: random.Random, state: str) -> AsyncIterator[None]:
    cluster = Administrator.of(world)
    partition = f"PartitionName={cluster.settings.partition}"
    await cluster.ask("scontrol", "update", partition, f"State={state}")
    try:
        yield
        await lasting(rng, 2, 8)
    finally:
        await cluster.ask("scontrol", "update", partition, "State=UP")


@asynccontextmanager
async def partition_down(world: World, rng: random.Random) -> AsyncIterator[None]:
    """Jobs are taken and not started."""
    async with _partition(world, rng, "DOWN"):
        yield


@asynccontextmanager
async def partition_drained(world: World, rng: random.Random) -> AsyncIterator[None]:
    """Jobs are started and not taken."""
    async with _partition(world, rng, "DRAIN"):
        yield


@asynccontextmanager
async def partition_inactive(world: World, rng: random.Random) -> AsyncIterator[None]:
    """Jobs are neither taken nor started."""
    async with _partition(world, rng, "INACTIVE"):
        yield


@asynccontextmanager
async def nodes_drained(world: World, rng: random.Random) -> AsyncIterator[None]:
    async with _nodes(world, rng, "DRAIN"):
        yield


@asynccontextmanager
async def nodes_down(world: World, rng: random.Random) -> AsyncIterator[None]:
    """What runs is killed as failed with its node."""
    async with _nodes(world, rng, "DOWN"):
        yield


@asynccontextmanager
async def _nodes(world: World, rng: random.Random, state: str) -> AsyncIterator[None]:
    cluster = Administrator.of(world)
    nodes = f"NodeName={','.join(cluster.nodes)}"
    await cluster.ask("scontrol", "update", nodes, f"State={state}", "Reason=maintenance")
    try:
        yield
        await lasting(rng, 2, 6)
    finally:
        await asyncio.to_thread(cluster.start)


@asynccontextmanager
async def cancelled(world: World, rng: random.Random) -> AsyncIterator[None]:
    """Some waiting and running jobs are cancelled by the administrator."""
    cluster = Administrator.of(world)
    await something_new(cluster.queued)
    await cluster.ask("scancel", *_some(rng, await asyncio.to_thread(cluster.queued)), check=False)
    yield


@asynccontextmanager
async def held(world: World, rng: random.Random) -> AsyncIterator[None]:
    """What waits is held for a while."""
    cluster = Administrator.of(world)
    async with _partition(world, rng, "DOWN"):
        await something_new(cluster.queued)
        waiting = _some(rng, await asyncio.to_thread(cluster.queued))
        await cluster.ask("scontrol", "hold", ",".join(waiting), check=False)
        yield
    await lasting(rng, 0, 3)
    await cluster.ask("scontrol", "release", ",".join(waiting), check=False)


@asynccontextmanager
async def requeued(world: World, rng: random.Random) -> AsyncIterator[None]:
    """Some running jobs are put back into the queue, although they asked not to be."""
    cluster = Administrator.of(world)
    await something_new(cluster.queued)
    for slurm_id in _some(rng, await asyncio.to_thread(cluster.queued)):
        await cluster.ask("scontrol", "update", f"JobId={slurm_id}", "Requeue=1", check=False)
        await cluster.ask("scontrol", "requeue", slurm_id, check=False)
    yield


@asynccontextmanager
async def suspended(world: World, rng: random.Random) -> AsyncIterator[None]:
    """What runs is stopped for a while."""
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


REQUEUED_S = 360.0  # Slurm waits two minutes before it starts such a job again, which is refused
LOST = frozenset({Allowed.LOST})
REFUSED = frozenset({Allowed.REFUSED})
FAULTS = [
    Fault("partition down", False, partition_down),
    Fault("partition drained", False, partition_drained, allows=REFUSED),
    Fault("partition inactive", False, partition_inactive, allows=REFUSED),
    Fault("nodes drained", False, nodes_drained),
    Fault("nodes set down", False, nodes_down, allows=frozenset({Allowed.FAULT, Allowed.REFUSED})),
    Fault("jobs cancelled by the administrator", False, cancelled, allows=frozenset({Allowed.ENDED, Allowed.REFUSED})),
    Fault("jobs held by the administrator", False, held),
    Fault("jobs requeued by the administrator", False, requeued, allows=LOST, cold_within_s=REQUEUED_S),
    Fault("jobs suspended by the administrator", False, suspended),
]
