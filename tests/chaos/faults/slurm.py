"""Faults of a cluster's daemons: the controller and its memory, nodes, accounting, authentication."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from signal import SIGCONT, SIGSTOP

from tests.chaos.administration import (
    Administrator,
    killed,
    lasting,
    nodes_resumed,
    outage,
    repaired,
    something_new,
    stopped,
)
from tests.chaos.fault import Allowed, Fault, Inject
from tests.chaos.world import World


@asynccontextmanager
async def controller_killed_after_submit(world: World, rng: random.Random) -> AsyncIterator[None]:
    """Its state is some seconds old: it forgets the jobs that it just took, and gives their ids away again."""
    cluster = Administrator.of(world)
    await something_new(cluster.queued)
    async with _controller_crashed(cluster):
        yield
        await lasting(rng, 0, 2)


@asynccontextmanager
async def controller_killed_after_end(world: World, rng: random.Random) -> AsyncIterator[None]:
    """It comes back with jobs that ended as jobs that wait or run, and starts them again."""
    cluster = Administrator.of(world)
    await something_new(cluster.ended)
    async with _controller_crashed(cluster):
        yield
        await lasting(rng, 0, 2)


@asynccontextmanager
async def controller_killed_again_and_again(world: World, rng: random.Random) -> AsyncIterator[None]:
    cluster = Administrator.of(world)
    yield
    for _ in range(3):
        async with _controller_crashed(cluster):
            await lasting(rng, 0, 1)


@asynccontextmanager
async def ids_used_again(world: World, rng: random.Random) -> AsyncIterator[None]:
    """After a lost state, jobs of somebody else get the ids that the grid's jobs had."""
    cluster = Administrator.of(world)
    await something_new(cluster.queued)
    foreign = ["sbatch", "--job-name=foreign", "--output=/dev/null", "--time=1", "--mem=1", "--wrap=true"]
    async with _controller_crashed(cluster):
        await lasting(rng, 0, 1)
        await asyncio.to_thread(cluster.start)
        for _ in range(8):
            await cluster.ask(*foreign, check=False)
        yield


@asynccontextmanager
async def old_state(world: World, rng: random.Random) -> AsyncIterator[None]:
    """The controller comes back with the state of a while ago, as from a backup."""
    cluster = Administrator.of(world)
    state, backup = _state(cluster), cluster.cluster_folder / "slurmctld-backup"
    await asyncio.to_thread(_copy, state, backup)
    await something_new(cluster.ended)
    yield
    await lasting(rng, 0, 3)
    async with _controller_crashed(cluster):
        shutil.rmtree(state)
        backup.rename(state)


@asynccontextmanager
async def no_state(world: World, rng: random.Random) -> AsyncIterator[None]:
    """The controller comes back knowing nothing: its jobs are killed by their nodes, ids begin at one again."""
    cluster = Administrator.of(world)
    await something_new(cluster.queued)
    async with _controller_crashed(cluster):
        shutil.rmtree(_state(cluster))
        _state(cluster).mkdir(mode=0o700)
        yield
        await lasting(rng, 0, 2)


@asynccontextmanager
async def _controller_crashed(cluster: Administrator) -> AsyncIterator[None]:
    """Killed, and started again at the end; nodes on which it starts a job twice are put back."""
    await asyncio.to_thread(cluster.kill, cluster.slurmctld)
    try:
        yield
    finally:
        await asyncio.to_thread(cluster.start)
        await nodes_resumed(cluster)


@asynccontextmanager
async def controller_hangs(world: World, rng: random.Random) -> AsyncIterator[None]:
    """Commands time out, but what they asked for is done once it goes on."""
    cluster = Administrator.of(world)
    pid = cluster.table.pid(cluster.slurmctld)
    assert pid is not None
    os.kill(pid, SIGSTOP)
    try:
        yield
        await lasting(rng, 5, 20)
    finally:
        os.kill(pid, SIGCONT)


@asynccontextmanager
async def node_killed(world: World, rng: random.Random) -> AsyncIterator[None]:
    """One slurmd, for less time than the controller needs to give it up."""
    cluster = Administrator.of(world)
    await asyncio.to_thread(cluster.kill, rng.choice(cluster.nodes))
    async with repaired(cluster):
        yield
        await lasting(rng, 0, 5)


@asynccontextmanager
async def node_given_up(world: World, rng: random.Random) -> AsyncIterator[None]:
    """One slurmd, until the controller takes the node for dead and fails its jobs."""
    cluster = Administrator.of(world)
    node = rng.choice(cluster.nodes)
    await asyncio.to_thread(cluster.kill, node)
    async with repaired(cluster):
        async with asyncio.timeout(GIVEN_UP_WITHIN_S):
            while "down" not in await asyncio.to_thread(cluster.slurm, "sinfo", "-h", "-n", node, "-o", "%T"):
                await asyncio.sleep(0.2)
        yield


@asynccontextmanager
async def nodes_restarted(world: World, rng: random.Random) -> AsyncIterator[None]:
    cluster = Administrator.of(world)
    for node in cluster.nodes:
        await asyncio.to_thread(cluster.stop, node)
    async with repaired(cluster):
        yield
        await lasting(rng, 0, 3)


def _state(cluster: Administrator) -> Path:
    return cluster.cluster_folder / "slurmctld"


def _copy(state: Path, backup: Path) -> None:
    """A running controller renames its files, so one may vanish while it is copied: then once more."""
    while True:
        shutil.rmtree(backup, ignore_errors=True)
        with suppress(shutil.Error, FileNotFoundError):
            shutil.copytree(state, backup)
            return


GIVEN_UP_WITHIN_S = 120.0
# A controller without its memory loses jobs, or starts them a second time: their node refuses, and that ends them.
FORGETS = frozenset({Allowed.LOST, Allowed.ENDED, Allowed.REFUSED, Allowed.STEP})
# It waits for a minute after an empty queue, for accounting, and for the grace of what is gone.
FORGETFUL_S = 300.0
# A node that is not there does not start jobs, or fails them.
NODE = frozenset({Allowed.FAULT, Allowed.REFUSED, Allowed.STEP})
AWAY = frozenset({Allowed.STEP})
BOTH = ["slurmdbd", "slurmctld"]


def _forgetful(name: str, inject: Inject) -> Fault:
    return Fault(name, False, inject, allows=FORGETS, cold_within_s=FORGETFUL_S)


FAULTS = [
    _forgetful("slurmctld killed just after jobs were submitted", controller_killed_after_submit),
    _forgetful("slurmctld killed just after jobs ended", controller_killed_after_end),
    _forgetful("slurmctld killed again and again", controller_killed_again_and_again),
    _forgetful("slurmctld forgot ids and gives them to others", ids_used_again),
    _forgetful("slurmctld with an old state", old_state),
    _forgetful("slurmctld with no state", no_state),
    Fault("slurmctld down", True, outage(partial(stopped, ["slurmctld"]), 1, 6), allows=AWAY),
    Fault("slurmctld hangs", False, controller_hangs, allows=AWAY),
    Fault("slurmd killed", False, node_killed, allows=NODE),
    Fault("slurmd given up", False, node_given_up, allows=NODE),
    Fault("all slurmds restarted", False, nodes_restarted, allows=NODE),
    Fault("slurmdbd down", True, outage(partial(killed, ["slurmdbd"]), 1, 4)),
    Fault("MariaDB down", False, outage(partial(killed, ["mariadbd"]), 2, 8)),
    _forgetful("slurmdbd and slurmctld down", outage(partial(killed, BOTH), 2, 8)),
    Fault("munged down", True, outage(partial(killed, ["munged"]), 1, 4), allows=AWAY),
]
