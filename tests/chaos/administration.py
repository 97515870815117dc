"""What the faults of a cluster share: the cluster in its administrator's hands, outages, files put aside."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from signal import SIGKILL

from deployments.onemachine.processes import Daemon
from tests.chaos.fault import Inject
from tests.chaos.world import World
from tests.slurm.support import Box

WITHIN_S = 10.0
NODES_WITHIN_S = 90.0
DRAINED_WITHIN_S = 5.0
POLL_S = 0.02


class Administrator(Box):
    """The cluster of a world, with all its daemons, files and commands."""

    @classmethod
    def of(cls, world: World) -> Administrator:
        return cls(world.grid.slurm, world.grid.table, world.cluster)

    @property
    def cluster_folder(self) -> Path:
        return Path(self.settings.grid_root).parent

    @property
    def spool(self) -> Path:
        return Path(self.settings.grid_root) / "spool"

    @property
    def slurmctld(self) -> str:
        return f"{self.name}-slurmctld"

    @property
    def nodes(self) -> list[str]:
        return self.site.clusters[self.name].node_names

    def kill(self, *daemons: str) -> None:
        """End daemons as a crash would."""
        for name in daemons:
            self.table.stop(self.slurmctld if name == "slurmctld" else name, SIGKILL)

    def start(self) -> None:
        """Start again what was stopped, and put nodes back that Slurm drained for a job started twice."""
        self.site.prepare()
        daemons = self.site.daemons()
        for daemon in daemons:
            self.table.start(daemon)
            if daemon.name not in self.nodes:
                self.table.wait_ready(daemon)
        for node in daemons:
            if node.name in self.nodes:
                works = partial(self._works, node)
                self.table.wait_ready(replace(node, ready=works, ready_within_s=NODES_WITHIN_S))

    def _works(self, node: Daemon) -> bool:
        """Whether the node takes jobs; one that does not is told to."""
        if node.ready():
            return True
        self.resume_nodes()
        return False

    def resume_nodes(self) -> None:
        """Have drained and down nodes work again; others are left as they are."""
        nodes = self.slurm("sinfo", "-h", "-N", "-o", "%N %T", check=False)
        for node, state in map(str.split, nodes.splitlines()):
            if state.startswith(("drain", "down")):
                self.slurm("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)

    def restart(self, name: str) -> None:
        """End a daemon in order and start it as it is configured now."""
        daemon = next(daemon for daemon in self.site.daemons() if daemon.name == name)
        self.table.stop(name)
        self.table.start(daemon)
        self.table.wait_ready(daemon)

    async def ask(self, *argv: str, check: bool = True) -> str:
        """One of Slurm's commands; with `check`, it succeeds."""
        return await asyncio.to_thread(partial(self.slurm, *argv, check=check))

    def rows(self, columns: str, state: str = "PENDING,RUNNING") -> list[list[str]]:
        """The grid's jobs in one of these states, none while Slurm does not answer."""
        account = self.settings.job_account or self.settings.user
        text = self.slurm("squeue", "-h", "-a", "-u", account, "-t", state, "-o", columns, check=False)
        return [line.split("|") for line in text.splitlines()]

    def queued(self) -> set[str]:
        """Slurm ids of the grid's jobs that wait or run."""
        return {row[0] for row in self.rows("%A")}

    def ended(self) -> set[str]:
        """Names of the completion records, acknowledged ones included."""
        folder = Path(self.settings.grid_root)
        with suppress(OSError):
            return {str(file) for file in [*self.spool.glob("[0-9]*"), *folder.glob("jobs/*/record")]}
        return set()


async def something_new(look: Callable[[], Iterable[str]]) -> None:
    """Return as soon as `look` shows what it did not show at first; after a while also without it."""
    known = set(await asyncio.to_thread(look))
    deadline = time.monotonic() + WITHIN_S
    while not set(await asyncio.to_thread(look)) - known and time.monotonic() < deadline:
        await asyncio.sleep(POLL_S)


async def lasting(rng: random.Random, least_s: float, most_s: float) -> None:
    """How long an outage lasts."""
    await asyncio.sleep(rng.uniform(least_s, most_s))


@asynccontextmanager
async def repaired(cluster: Administrator) -> AsyncIterator[None]:
    """Whatever was stopped inside runs again afterwards."""
    try:
        yield
    finally:
        await asyncio.to_thread(cluster.start)


@asynccontextmanager
async def stopped(daemons: Sequence[str], world: World, _rng: random.Random) -> AsyncIterator[None]:
    """Some of the cluster's daemons are ended in order for a while."""
    cluster = Administrator.of(world)
    async with repaired(cluster):
        for name in daemons:
            await asyncio.to_thread(cluster.stop, name)
        yield


@asynccontextmanager
async def killed(daemons: Sequence[str], world: World, _rng: random.Random) -> AsyncIterator[None]:
    """Some of the cluster's daemons are away after a crash."""
    cluster = Administrator.of(world)
    async with repaired(cluster):
        await asyncio.to_thread(cluster.kill, *daemons)
        yield


def outage(broken: Inject, least_s: float, most_s: float) -> Inject:
    """What is `broken` stays so for some seconds after jobs were submitted."""

    @asynccontextmanager
    async def inject(world: World, rng: random.Random) -> AsyncIterator[None]:
        async with broken(world, rng):
            yield
            await lasting(rng, least_s, most_s)

    return inject


async def nodes_resumed(cluster: Administrator) -> None:
    """A controller that lost its memory starts jobs a second time, and drains the node that still runs the first."""
    deadline = time.monotonic() + DRAINED_WITHIN_S
    while time.monotonic() < deadline:
        await asyncio.to_thread(cluster.resume_nodes)
        await asyncio.sleep(0.5)


@contextmanager
def replaced(file: Path, text: str) -> Iterator[None]:
    """Another text in a file for a while; Slurm sees both changes by the file's time, in whole seconds."""
    before = file.read_text()
    _write(file, text)
    try:
        yield
    finally:
        _write(file, before)


def _write(file: Path, text: str) -> None:
    status = file.stat()
    draft = file.with_name(f".{file.name}.draft")
    draft.write_text(text)
    draft.chmod(status.st_mode)
    newer = max(int(status.st_mtime) + 1, int(time.time()))
    os.utime(draft, (newer, newer))
    draft.rename(file)
