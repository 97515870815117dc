"""Faults of the completion hook and its spool, which report the ends of jobs."""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path

from tests.chaos.administration import Administrator, outage, replaced
from tests.chaos.fault import Fault
from tests.chaos.world import World

RECORD = "function slurm_jobcomp_log_record(job)\n"
FAILURES = (
    "  error('the hook is broken')\n",
    "  do return slurm.ERROR end\n",
    "  this is no Lua at all\n",
)


@asynccontextmanager
async def hook_begins(choose: Callable[[random.Random], str], world: World, rng: random.Random) -> AsyncIterator[None]:
    """Insert a line at the beginning of the hook. Slurm reads the hook again when its modification time changes."""
    file = Administrator.of(world).cluster_folder / "jobcomp.lua"
    text = file.read_text()
    assert RECORD in text
    with replaced(file, text.replace(RECORD, RECORD + choose(rng))):
        yield


def _slowly(rng: random.Random) -> str:
    """Return a hook that blocks the controller for a second or more for each job that ends."""
    return f"  os.execute('sleep {rng.uniform(0.5, 2):.2f}')\n"


def _failing(rng: random.Random) -> str:
    return rng.choice(FAILURES)


@asynccontextmanager
async def removed(world: World, _rng: random.Random) -> AsyncIterator[None]:
    """The cluster's configuration names no hook for a while, so that no records are written."""
    cluster = Administrator.of(world)
    file = cluster.cluster_folder / "slurm.conf"
    try:
        with replaced(file, file.read_text().replace("JobCompType=jobcomp/lua\n", "")):
            await asyncio.to_thread(cluster.restart, cluster.slurmctld)
            yield
    finally:
        await asyncio.to_thread(cluster.restart, cluster.slurmctld)


@asynccontextmanager
async def spool_full(world: World, _rng: random.Random) -> AsyncIterator[None]:
    """The spool's disk is full."""
    with _small_disk(Administrator.of(world).spool) as spool:
        _fill(spool)
        yield


@asynccontextmanager
async def spool_away(world: World, _rng: random.Random) -> AsyncIterator[None]:
    """The spool's file system is not mounted. Neither hook nor supervisor finds the folder."""
    spool = Administrator.of(world).spool
    away = spool.rename(spool.with_name("spool-away"))
    try:
        yield
    finally:
        away.rename(spool)


@contextmanager
def _small_disk(folder: Path) -> Iterator[Path]:
    """Mount a small disk over `folder` with a copy of its files. At the end the files are copied back."""
    below = folder.with_name(f"{folder.name}-below")
    below.mkdir(mode=0o700)
    with (
        _mounted(["--bind", str(folder)], below),
        _mounted(["-t", "tmpfs", "-o", "size=512k,mode=700", "none"], folder),
    ):
        known = _copy(below, folder)
        try:
            yield folder
        finally:
            (folder / "filler").unlink(missing_ok=True)
            for name in known - {file.name for file in folder.iterdir()}:
                (below / name).unlink()
            _copy(folder, below)
    below.rmdir()


@contextmanager
def _mounted(what: list[str], place: Path) -> Iterator[None]:
    subprocess.run(["mount", *what, str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _copy(source: Path, target: Path) -> set[str]:
    """Copy the records. Returns their names."""
    records = list(source.glob("[0-9]*"))
    for record in records:
        with suppress(FileNotFoundError):  # acknowledged meanwhile
            shutil.copy2(record, target)
    return {record.name for record in records}


def _fill(folder: Path) -> None:
    with suppress(OSError), open(folder / "filler", "wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))


FAULTS = [
    Fault("completion hook slow", outage(partial(hook_begins, _slowly), 4, 10)),
    Fault("completion hook failing", outage(partial(hook_begins, _failing), 2, 5)),
    Fault("completion hook removed", outage(removed, 3, 8)),
    Fault("spool's disk full", outage(spool_full, 2, 5)),
    Fault("spool away", outage(spool_away, 3, 8)),
]
