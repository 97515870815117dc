"""Workflows on a real Slurm cluster: storage and programs of its nodes, runs of jobs, and their remains."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.sbatch import GUARD_MARK, Containers, StoragePaths, render
from deepgrid.sbatch.render import USUAL
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deepgrid.workflow import Definition
from tests.sbatch.bucket import S5CMD
from tests.sbatch.sandbox import CANNOT, NO_TUN
from tests.slurm.support import Box, ended
from tests.waiting import until


@pytest.fixture
def programs(box: Box) -> Path:
    """A folder with programs of the cluster's nodes."""
    folder = Path(box.settings.grid_root).parent / "programs"
    folder.mkdir(exist_ok=True)
    shutil.copy(S5CMD, folder)
    return folder


def storage_of(box: Box) -> StoragePaths:
    """Storage roots of a cluster that every account may use."""
    paths = StoragePaths.under(str(Path(box.settings.grid_root).parent / "storage"))
    for root in paths.roots:
        Path(root).mkdir(parents=True, exist_ok=True)
        Path(root).chmod(0o1777)
    return paths


@pytest.fixture
def storage(box: Box) -> StoragePaths:
    return storage_of(box)


async def run(
    job: Definition, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, box: Box, storage: StoragePaths,
    programs: Path | None = None, containers: Containers = USUAL,
) -> tuple[int, str]:  # fmt: skip
    """Submit a workflow as a carrier would. Returns its exit status and output."""
    figures = job.resources
    request = SubmitRequest(figures.tasks, figures.cpus_per_task, figures.mem_per_cpu, figures.gpus, 5)
    script = render(job, storage, containers)
    if programs:
        script = script.replace(GUARD_MARK, f"{GUARD_MARK}\nPATH={programs}:$PATH", 1)
    await cluster.submit(key, script, request)
    state = await ended(monitor, key)
    await until(lambda: list(Path(storage.job).glob("*/*")) == [])
    output = (box.folder(key) / "output.log").read_text()
    return state.exit_status >> 8, output


def with_variable(pair: str) -> list[int]:
    """Return the ids of the processes that were started with this variable. All nodes are this machine."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # the process has ended meanwhile
            if pair.encode() in environ.read_bytes().split(b"\0"):
                found.append(int(environ.parent.name))
    return found


RESOURCES = "enableLogging: true\nresources: {tasks: 6, cpusPerTask: 1, memPerCpu: 100, gpus: 0}\n"


TUN = Path("/dev/net/tun")


@pytest.fixture
def node() -> Iterator[list[str]]:
    """A node as providers set it up: jobs may open the device, and wireguard-go has its folder.

    Yields the errors of jobs that cannot have a network here, for slirp4netns and pasta; empty if they can.
    """
    folder, made, mode = Path("/run/wireguard"), False, None
    if os.getuid() == 0 and TUN.is_char_device():
        mode = TUN.stat().st_mode & 0o777
        TUN.chmod(0o666)
        made = not folder.exists()
        folder.mkdir(exist_ok=True)
    usable = os.access(TUN, os.R_OK | os.W_OK)
    way_out = bool(subprocess.run(["ip", "-4", "route", "show", "default"], check=True, capture_output=True).stdout)
    slirp = "" if usable else NO_TUN
    yield [slirp, slirp or ("" if way_out else CANNOT + "net0 did not come up")]
    if mode is not None:
        TUN.chmod(mode)
    if made:
        folder.rmdir()
