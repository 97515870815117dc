"""Actions of a job's account on the login node, in the folder where its job runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from pwd import getpwuid

from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.submit.protocol import SubmitRequest
from tests.slurm.support import SMALL, WAIT_FOR_LEAVE, bash, printed


class Intruder:
    """The account of a running job. `folder` is its claim's folder, `run` is where the job runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run = folder / "run"
        self.log = folder / "output.log"
        self._account = getpwuid(self.run.stat().st_uid)

    def does(self, script: str) -> bool:
        """Run a script as the account, with its claim's folder in $F. Returns whether all of it succeeded."""
        own = self._account
        become = ["setpriv", f"--reuid={own.pw_uid}", f"--regid={own.pw_gid}", "--clear-groups"]
        argv = [*(become if os.getuid() == 0 else []), "sh", "-ec", script]
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "F": str(self.folder)}
        return (
            subprocess.run(argv, cwd=self.run, env=env, check=False, capture_output=True, timeout=300).returncode == 0
        )

    def owns(self, path: Path) -> bool:
        return path.lstat().st_uid == self._account.pw_uid


@asynccontextmanager
async def intruder(cluster: Cluster, key: JobKey, request: SubmitRequest = SMALL) -> AsyncIterator[Intruder]:
    """Yield a claim whose job prints `up` and runs until the end of the context."""
    folder = Path(cluster.settings.grid_root) / "jobs" / key.folder
    await cluster.submit(key, bash(f"echo up; {WAIT_FOR_LEAVE}"), request)
    try:
        await printed(cluster, key)
        yield Intruder(folder)
    finally:
        await cluster.cancel(key)
