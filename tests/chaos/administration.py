"""Helpers for faults of a cluster: its administrator's commands, outages, and files that are replaced for a while."""

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

from deployments.onemachine.daemons.processes import Daemon
from tests.chaos.fault import Inject
from tests.chaos.world import World
from tests.slurm.support import Box

WITHIN_S = 10.0
NODES_WITHIN_S = 90.0
DRAINED_WITHIN_S = 5.0
POLL_S = 0.02


class Administrator(Box):
    """The cluster of a world: its daemons, files and commands."""

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
        """Kill daemons, as in a crash."""
        for name in daemons:
            self.table.stop(self.slurmctld if name == "slurmctld" else name, SIGKILL)

    def start(self) -> None:
        """Start what was stopped, and resume nodes that Slurm drained because of a job started twice."""
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
        """Return whether the node takes jobs. Resumes a node that does not."""
        if node.ready():
            return True
        self.resume_nodes()
        return False

    def resume_nodes(self) -> None:
        """Resume nodes that are drained or down. Others are left as they are."""
        nodes = self.slurm("sinfo", "-h", "-N", "-o", "%N %T", check=False)
        for node, state in map(str.split, nodes.splitlines()):
            if state.startswith(("drain", "down")):
                self.slurm("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)

    def restart(self, name: str) -> None:
        """Stop a daemon cleanly and start it with its present configuration."""
        daemon = next(daemon for daemon in self.site.daemons() if daemon.name == name)
        self.table.stop(name)
        self.table.start(daemon)
        self.table.wait_ready(daemon)

    async def ask(self, *argv: str, check: bool = True) -> str:
        """Run one of Slurm's commands. With `check`, it must succeed."""
        return await asyncio.to_thread(partial(self.slurm, *argv, check=check))

    def rows(self, columns: str, state: str = "PENDING,RUNNING") -> list[list[str]]:
        """Return the grid's jobs in one of these states; empty while Slurm does not answer."""
        account = self.settings.job_account or self.settings.user
        text = self.slurm("squeue", "-h", "-a", "-u", account, "-t", state, "-o", columns, check=False)
        return [line.split("|") for line in text.splitlines()]

    def queued(self) -> set[str]:
        """Return the Slurm ids of the grid's jobs that wait or run."""
        return {row[0] for row in self.rows("%A")}

    def ended(self) -> set[str]:
        """Return the names of the completion records, including acknowledged ones."""
        folder = Path(self.settings.grid_root)
        with suppress(OSError):
            return {str(file) for file in [*self.spool.glob("[0-9]*"), *folder.glob("jobs/*/record")]}
        return set()


async def something_new(look: Callable[[], Iterable[str]]) -> None:
    """Return when `look` shows something new, or after a timeout."""
    known = set(await asyncio.to_thread(look))
    deadline = time.monotonic() + WITHIN_S
    while not set(await asyncio.to_thread(look)) - known and time.monotonic() < deadline:
        await asyncio.sleep(POLL_S)


async def lasting(rng: random.Random, least_s: float, most_s: float) -> None:
    """Wait for the duration of an outage."""
    await asyncio.sleep(rng.uniform(least_s, most_s))


@asynccontextmanager
async def repaired(cluster: Administrator) -> AsyncIterator[None]:
    """Everything that was stopped inside the context runs again afterwards."""
    try:
        yield
    finally:
        await asyncio.to_thread(cluster.start)


@asynccontextmanager
async def stopped(daemons: Sequence[str], world: World, _rng: random.Random) -> AsyncIterator[None]:
    """Some of the cluster's daemons are stopped cleanly for a while."""
    cluster = Administrator.of(world)
    async with repaired(cluster):
        for name in daemons:
            await asyncio.to_thread(cluster.stop, name)
        yield


@asynccontextmanager
async def killed(daemons: Sequence[str], world: World, _rng: random.Random) -> AsyncIterator[None]:
    """Some of the cluster's daemons are down after a crash."""
    cluster = Administrator.of(world)
    async with repaired(cluster):
        await asyncio.to_thread(cluster.kill, *daemons)
        yield


def outage(broken: Inject, least_s: float, most_s: float) -> Inject:
    """Let the fault `broken` last until some seconds after jobs were submitted."""

    @asynccontextmanager
    async def inject(world: World, rng: random.Random) -> AsyncIterator[None]:
        async with broken(world, rng):
            yield
            await lasting(rng, least_s, most_s)

    return inject


async def nodes_resumed(cluster: Administrator) -> None:
    """A controller that lost its state starts jobs again, and drains the node that still runs the first start."""
    deadline = time.monotonic() + DRAINED_WITHIN_S
    while time.monotonic() < deadline:
        await asyncio.to_thread(cluster.resume_nodes)
        await asyncio.sleep(0.5)


@contextmanager
def replaced(file: Path, text: str) -> Iterator[None]:
    """Replace the text of a file for a while.

    Slurm notices both changes by the file's modification time in whole seconds.
    """
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
