"""Claims without a carrier, and their state at the cluster."""

from __future__ import annotations

import pwd

from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from tests.provider.scene import Scene
from tests.slurm.support import SMALL, WAIT_FOR_LEAVE, Box, bash
from tests.waiting import until


async def running(scene: Scene, box: Box) -> JobKey:
    """Return a claim that runs on chain and at Slurm until `leave` is called. It has no carrier."""
    key = await scene.claimed()
    login = Login(box.settings)
    await Cluster(login, box.settings).submit(key, bash(WAIT_FOR_LEAVE), SMALL)  # by an earlier supervisor
    await login.close()
    await until(lambda: in_queue(box, key) == "RUNNING")
    await scene.session.writer.set_running(key.job_id, 1)
    return key


def in_queue(box: Box, key: JobKey) -> str:
    return box.slurm("squeue", "-h", "-a", "-n", key.name, "-o", "%T").strip()


def account_of(box: Box) -> int:
    """Return the numeric id of the account of the jobs."""
    return pwd.getpwnam(box.settings.job_account or box.settings.user).pw_uid
