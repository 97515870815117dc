"""Jobs on one real cluster: each test runs a workflow as a customer writes it, and reads what the customer sees."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.sbatch import Containers, StoragePaths
from deepgrid.sbatch.render import USUAL
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deepgrid.workflow import parse
from tests.sbatch.bucket import bucket, s3_server
from tests.sbatch.slurm_support import run, storage
from tests.sbatch.store import store
from tests.sbatch.support import Bench, without_progress
from tests.slurm.conftest import box, cluster, key, login, monitor, state_folder
from tests.slurm.support import Box

__all__ = ["box", "bucket", "cluster", "key", "login", "monitor", "s3_server", "state_folder", "storage", "store"]

HEADER = "enableLogging: true\nresources: {tasks: 1, cpusPerTask: 1, memPerCpu: 128, gpus: 0}\n"

# A stand-in of Enroot, which runs the command without a container.
ENROOT = """#!/bin/sh
case $1 in
import) printf hsqs >"$3" ;;
start)
  until case $1 in deepgrid-*) ;; *) false ;; esac; do shift; done
  shift
  exec "$@"
  ;;
esac
"""


@dataclass(frozen=True)
class RealSite:
    """A cluster on which a test runs its job."""

    cluster: Cluster
    monitor: SlurmMonitor
    key: JobKey
    box: Box
    storage: StoragePaths

    async def run(
        self, text: str, *, header: str = HEADER, programs: Path | None = None, containers: Containers = USUAL
    ) -> tuple[int, list[str]]:
        """Run a workflow, and return its exit status and the lines of its output, without Slurm's lines."""
        job = parse(header + text, "job").model
        status, output = await run(
            job, self.cluster, self.monitor, self.key, self.box, self.storage, programs, containers
        )
        return status, without_progress(output)


@pytest.fixture
def site(cluster: Cluster, monitor: SlurmMonitor, key: JobKey, box: Box, storage: StoragePaths) -> RealSite:
    return RealSite(cluster, monitor, key, box, storage)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "bench")
