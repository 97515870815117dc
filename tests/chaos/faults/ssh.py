"""Faults of the connection to the login node, and of the login node itself."""

from __future__ import annotations

import asyncio
import random
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from deployments.onemachine.daemons.processes import Daemon
from deployments.onemachine.slurm.slurm_steps import kill_descendants
from tests.chaos.administration import Administrator, lasting, outage, stopped
from tests.chaos.fault import Fault
from tests.chaos.proxy import HOST, Cut, Down, Hang, Mode, Pass, Slow
from tests.chaos.world import World

Choose = Callable[[random.Random], Mode]
NOTICED_WITHIN_S = 60.0
LONGEST_ANSWER = 6000  # bytes, about as many as a login and one command need
# Commands of a login shell's start-up file, which print text before the output of each command.
CHATTER = (
    "echo 'Welcome to the cluster'; echo 'Last login: today'",
    "printf 'no newline at its end'",
    "yes 'Maintenance is on Friday' | head -c 300000",
    "yes 'Maintenance is on Friday' | head -c 30000000",
    "echo 'disk quota exceeded' >&2",
)


@asynccontextmanager
async def way(choose: Choose, world: World, rng: random.Random) -> AsyncIterator[None]:
    """The proxy between the supervisor and the login node."""
    world.ssh.set(choose(rng))
    try:
        yield
    finally:
        world.ssh.set(Pass())


@asynccontextmanager
async def sessions_killed(world: World, rng: random.Random) -> AsyncIterator[None]:
    """All SSH sessions are killed at once, several times, with the commands that they run."""
    cluster = Administrator.of(world)
    pid = cluster.table.pid(f"{cluster.name}-sshd")
    assert pid is not None
    yield
    for _ in range(5):
        await lasting(rng, 0, 1.5)
        kill_descendants(pid)


@asynccontextmanager
async def cut(world: World, rng: random.Random) -> AsyncIterator[None]:
    """The connection breaks in the middle of answers."""
    yield
    for _ in range(5):
        before = world.ssh.cuts
        async with way(_cut, world, rng):
            await _until(lambda before=before: world.ssh.cuts > before)  # type: ignore[misc]
        await lasting(rng, 0, 1)


@asynccontextmanager
async def hanging_then_cut(world: World, rng: random.Random) -> AsyncIterator[None]:
    async with way(_hang, world, rng):
        yield
        await lasting(rng, 2, 15)
        world.ssh.set(Down())
        await lasting(rng, 0, 3)


def _hang(_rng: random.Random) -> Mode:
    """Return a mode in which the login node accepts connections and does not answer.

    Later all that it held back arrives.
    """
    return Hang()


def _cut(rng: random.Random) -> Mode:
    return Cut(rng.randrange(LONGEST_ANSWER))


def _unheard(rng: random.Random) -> Mode:
    """Return a mode in which commands arrive and run, but their answers are lost."""
    return Cut(rng.randrange(200))


def _slow(rng: random.Random) -> Mode:
    return Slow(delay_s=rng.uniform(0.2, 1.0), bytes_at_once=256, pause_s=0.01)


@asynccontextmanager
async def chatter(world: World, rng: random.Random) -> AsyncIterator[None]:
    """The login shell prints text before each answer."""
    start_up = Administrator.of(world).cluster_folder / "login-home" / ".bashrc"
    start_up.write_text(rng.choice(CHATTER) + "\n")
    try:
        yield
    finally:
        start_up.unlink()


@asynccontextmanager
async def another_host_key(world: World, rng: random.Random) -> AsyncIterator[None]:
    """Another host answers at the login node's address. The supervisor stops using it and logs why."""
    cluster, proxy = Administrator.of(world), world.ssh
    real, said = proxy.target_port, world.supervisor.log.stat().st_size
    daemon = await asyncio.to_thread(_impostor, cluster)
    proxy.target_port = cluster.site._port(daemon.name)
    try:
        proxy.set(Down())
        proxy.set(Pass())
        yield
        await _until(lambda: b"another host key" in world.supervisor.log.read_bytes()[said:])
        assert b"another host key" in world.supervisor.log.read_bytes()[said:], "the changed host key was not logged"
        await lasting(rng, 0, 2)
    finally:
        proxy.target_port = real
        proxy.set(Down())
        proxy.set(Pass())
        await asyncio.to_thread(cluster.table.stop, daemon.name)


@asynccontextmanager
async def disk_full(world: World, _rng: random.Random) -> AsyncIterator[None]:
    """The disk of the login node is full."""
    cluster = Administrator.of(world)
    await asyncio.to_thread(cluster.stop, "sshd")
    await asyncio.to_thread(_start_without_disk, cluster)
    try:
        yield
    finally:
        await asyncio.to_thread(cluster.stop, "sshd")
        await asyncio.to_thread(cluster.start)


def _impostor(cluster: Administrator) -> Daemon:
    """Return a running sshd with another host key."""
    name = f"{cluster.name}-impostor"
    port, folder = cluster.site._port(name), cluster.cluster_folder
    key, configuration = folder / "impostor_ed25519", folder / "impostor_config"
    if not key.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    real = (folder / "sshd_config").read_text()
    text = real.replace(str(folder / "ssh" / "host_ed25519"), str(key)).replace(
        f"Port {cluster.settings.port}", f"Port {port}"
    )
    configuration.write_text(text.replace("sshd.pid", "impostor.pid"))
    argv = ["/usr/sbin/sshd", "-D", "-e", "-f", str(configuration)]
    daemon = Daemon(name, argv, ready=lambda: _answers(port))
    cluster.table.start(daemon)
    cluster.table.wait_ready(daemon)
    return daemon


def _start_without_disk(cluster: Administrator) -> None:
    """Start an sshd whose sessions have a file size limit of 0. Writes fail as on a full disk; no process is killed."""
    port = cluster.settings.port
    real = next(daemon for daemon in cluster.site.daemons() if daemon.name == f"{cluster.name}-sshd")
    limited = ["sh", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh", *real.argv]
    daemon = Daemon(real.name, limited, ready=lambda: _answers(port))
    cluster.table.start(daemon)
    cluster.table.wait_ready(daemon)


def _answers(port: int) -> bool:
    with socket.socket() as peer:
        return peer.connect_ex((HOST, port)) == 0


async def _until(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds, or until a timeout."""
    deadline = time.monotonic() + NOTICED_WITHIN_S
    while not condition() and time.monotonic() < deadline:
        await asyncio.sleep(0.05)


FAULTS = [
    Fault("sshd down", outage(partial(stopped, ["sshd"]), 1, 6)),
    Fault("sshd sessions killed", sessions_killed),
    Fault("ssh cut in the middle of answers", cut),
    Fault("ssh answers lost", outage(partial(way, _unheard), 2, 6)),
    Fault("login node hangs", outage(partial(way, _hang), 5, 20)),
    Fault("login node hangs, then drops all", hanging_then_cut),
    Fault("login node slow", outage(partial(way, _slow), 5, 15)),
    Fault("login shell talks", outage(chatter, 3, 8)),
    Fault("host key changed", another_host_key),
    Fault("login node's disk full", outage(disk_full, 2, 8)),
]
