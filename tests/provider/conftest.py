"""A provider's session on a real chain and a real Slurm cluster, without Prefect and without the services."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deployments.onemachine.slurm import ClusterSpec
from tests.chain.grid import Grid, running_grid
from tests.provider.scene import Scene, scene_with
from tests.running_site import running_site
from tests.slurm.support import Box

_number = itertools.count()


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """A folder that other accounts may enter, unlike pytest's own: jobs run under their own account."""
    folder = Path(tempfile.mkdtemp(prefix="dg-provider-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def box(folder: Path) -> Iterator[Box]:
    spec = ClusterSpec("unit", nodes=2, cpus_per_node=8, mem_per_node_mb=4000)
    with running_site(folder, spec) as (site, table):
        yield Box(site, table, "unit")


@pytest.fixture(scope="session")
def grid(folder: Path) -> Iterator[Grid]:
    with running_grid(folder) as grid:
        yield grid


@pytest.fixture
async def scene(grid: Grid, box: Box, tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene_with(grid, box.settings, tmp_path, grid.new_key(f"customer-{next(_number)}")) as scene:
        yield scene


@pytest.fixture
async def approved(scene: Scene) -> AsyncIterator[Scene]:
    """A provider that may claim jobs. Its jobs are removed from Slurm after the test."""
    await scene.approve()
    yield scene
    for job_id in await scene.session.chain.claimed_jobs(scene.session.address):
        await scene.session.cluster.cancel(scene.session.key_of(await scene.session.chain.job(job_id)))


@pytest.fixture
async def key(approved: Scene) -> JobKey:
    """A job that the provider has claimed."""
    return await approved.claimed()
