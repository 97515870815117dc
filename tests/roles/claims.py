"""Claims at the cluster that nobody carries, and what the cluster says of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from tests.roles.conftest import Scene
from tests.slurm.support import SMALL, WAIT_FOR_LEAVE, WAIT_S, Box, bash


async def running(scene: Scene, box: Box) -> JobKey:
    """A claim that runs, on chain and at Slurm, until it may leave; nobody carries it, or has seen it."""
    key = await scene.claimed()
    login = Login(box.settings)
    await Cluster(login, box.settings).submit(key, bash(WAIT_FOR_LEAVE), SMALL)  # by a supervisor of before
    await login.close()
    await until(lambda: in_queue(box, key) == "RUNNING")
    await scene.session.writer.set_running(key.job_id, 1)
    return key


def in_queue(box: Box, key: JobKey) -> str:
    return box.slurm("squeue", "-h", "-a", "-n", key.name, "-o", "%T").strip()


async def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)
