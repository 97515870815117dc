"""One real cluster for all tests here: controller, two nodes, sshd, accounting, hooks, and an account for jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deployments.onemachine.slurm import ClusterSpec
from tests.running_site import running_site
from tests.slurm.sshds import Site, sshds
from tests.slurm.support import Box, new_key, open_folder


@pytest.fixture(scope="session")
def state_folder() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def box(state_folder: Path) -> Iterator[Box]:
    spec = ClusterSpec("unit", nodes=2, cpus_per_node=8, mem_per_node_mb=4000, gpus_per_node=1, private=False)
    with running_site(state_folder, spec) as (site, table):
        yield Box(site, table, "unit")


@pytest.fixture
async def login(box: Box) -> AsyncIterator[Login]:
    """A transport to the login node."""
    login = Login(box.settings)
    yield login
    await login.close()


@pytest.fixture
async def cluster(login: Login, box: Box) -> Cluster:
    """The cluster over that transport."""
    return Cluster(login, box.settings)


@pytest.fixture
async def monitor(cluster: Cluster) -> AsyncIterator[SlurmMonitor]:
    monitor = SlurmMonitor(cluster, poll_s=0.2)
    yield monitor
    await monitor.close()


@pytest.fixture
def key() -> JobKey:
    return new_key()


@pytest.fixture
def held(box: Box) -> Iterator[Callable[[], None]]:
    """Keep all jobs from starting until the test calls it or ends."""

    def release() -> None:
        box.slurm("scontrol", "update", f"PartitionName={box.settings.partition}", "State=UP")

    box.slurm("scontrol", "update", f"PartitionName={box.settings.partition}", "State=DOWN")
    yield release
    release()


@pytest.fixture
def stop(box: Box) -> Iterator[Callable[[str], None]]:
    """Stop a daemon. All stopped daemons start again after the test."""
    yield box.stop
    box.start()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the accounts of sshds can enter."""
    with open_folder() as folder:
        yield folder


@pytest.fixture
def site(box: Box, folder: Path) -> Iterator[Site]:
    """Start another sshd of the cluster."""
    with sshds(box, folder) as start:
        yield start
