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
    """The controller's state is some seconds old. It forgets the newest jobs and assigns their ids again."""
    cluster = Administrator.of(world)
    await something_new(cluster.queued)
    async with _controller_crashed(cluster):
        yield
        await lasting(rng, 0, 2)


@asynccontextmanager
async def controller_killed_after_end(world: World, rng: random.Random) -> AsyncIterator[None]:
    """The controller restarts with ended jobs as waiting or running, and starts them again."""
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
    """After a lost state, jobs of another user get the ids of the grid's jobs."""
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
    """The controller restarts with an old state, as from a backup."""
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
    """The controller restarts without state. The nodes kill its jobs, and ids begin at 1 again."""
    cluster = Administrator.of(world)
    await something_new(cluster.queued)
    async with _controller_crashed(cluster):
        shutil.rmtree(_state(cluster))
        _state(cluster).mkdir(mode=0o700)
        yield
        await lasting(rng, 0, 2)


@asynccontextmanager
async def _controller_crashed(cluster: Administrator) -> AsyncIterator[None]:
    """Kill the controller and start it again at the end. Nodes on which it starts a job twice are resumed."""
    await asyncio.to_thread(cluster.kill, cluster.slurmctld)
    try:
        yield
    finally:
        await asyncio.to_thread(cluster.start)
        await nodes_resumed(cluster)


@asynccontextmanager
async def controller_hangs(world: World, rng: random.Random) -> AsyncIterator[None]:
    """The controller is suspended. Commands time out, but their requests are executed when it continues."""
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
    """One slurmd is down for less time than the controller needs to give it up."""
    cluster = Administrator.of(world)
    await asyncio.to_thread(cluster.kill, rng.choice(cluster.nodes))
    async with repaired(cluster):
        yield
        await lasting(rng, 0, 5)


@asynccontextmanager
async def node_given_up(world: World, rng: random.Random) -> AsyncIterator[None]:
    """One slurmd is down until the controller marks the node as down and fails its jobs."""
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
    """Copy the controller's files. It renames them while it runs, so the copy is retried when a file vanishes."""
    while True:
        shutil.rmtree(backup, ignore_errors=True)
        with suppress(shutil.Error, FileNotFoundError):
            shutil.copytree(state, backup)
            return


GIVEN_UP_WITHIN_S = 120.0
# A controller without its state loses jobs, or starts them a second time. Their node refuses that, and they end.
FORGETS = frozenset({Allowed.LOST, Allowed.ENDED, Allowed.REFUSED, Allowed.STEP})
# Collection waits for a minute after an empty queue, for accounting, and for the grace period of missing jobs.
FORGETFUL_S = 300.0
# A missing node does not start jobs, or fails them.
NODE = frozenset({Allowed.FAULT, Allowed.REFUSED, Allowed.STEP})
AWAY = frozenset({Allowed.STEP})
BOTH = ["slurmdbd", "slurmctld"]


def _forgetful(name: str, inject: Inject) -> Fault:
    return Fault(name, inject, allows=FORGETS, cold_within_s=FORGETFUL_S)


FAULTS = [
    _forgetful("slurmctld killed just after jobs were submitted", controller_killed_after_submit),
    _forgetful("slurmctld killed just after jobs ended", controller_killed_after_end),
    _forgetful("slurmctld killed again and again", controller_killed_again_and_again),
    _forgetful("slurmctld forgot ids and gives them to others", ids_used_again),
    _forgetful("slurmctld with an old state", old_state),
    _forgetful("slurmctld with no state", no_state),
    Fault("slurmctld down", outage(partial(stopped, ["slurmctld"]), 1, 6), allows=AWAY),
    Fault("slurmctld hangs", controller_hangs, allows=AWAY),
    Fault("slurmd killed", node_killed, allows=NODE),
    Fault("slurmd given up", node_given_up, allows=NODE),
    Fault("all slurmds restarted", nodes_restarted, allows=NODE),
    Fault("slurmdbd down", outage(partial(killed, ["slurmdbd"]), 1, 4)),
    Fault("MariaDB down", outage(partial(killed, ["mariadbd"]), 2, 8)),
    _forgetful("slurmdbd and slurmctld down", outage(partial(killed, BOTH), 2, 8)),
    Fault("munged down", outage(partial(killed, ["munged"]), 1, 4), allows=AWAY),
]
