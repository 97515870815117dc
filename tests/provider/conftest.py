"""A provider's session on a real chain and a real Slurm cluster, without Prefect and without the services."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.registration import register
from deepgrid.provider.session import Intervals, ProviderSettings, provider_session
from deepgrid.provider.shared.log_shipping import LogShippingSettings
from deepgrid.sbatch import StoragePaths
from deployments.onemachine.slurm import ClusterSpec, running_site
from tests.chain.grid import CREDIT, Grid, approve_waiting, running_grid
from tests.provider.scene import OWN_LABELS, PRICES, Scene
from tests.slurm.support import WAIT_S, Box

# A single query of Slurm must suffice, however busy the machine is. There are no services that could accept logs.
INTERVALS = Intervals(slurm_answers_s=WAIT_S)
LOG_SHIPPING = LogShippingSettings(drain_s=0.1)

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
    number = next(_number)
    names = [f"test-{role}-{number}" for role in ("provider", "customer")]
    for name in names:
        grid.new_key(name)
    settings = ProviderSettings(
        cluster="unit", book=grid.book.save(tmp_path / "grid.json"), key_file=grid.keys / names[0],
        login=box.settings, storage=StoragePaths.under(str(tmp_path)), prices=PRICES, labels=OWN_LABELS,
        state=tmp_path, claim_stays_s=0, trust_customers=True,
    )  # fmt: skip
    async with provider_session(settings, INTERVALS, LOG_SHIPPING) as session:
        operator = Writer(session.chain, Sender(session.chain, Wallet.load(grid.operator_key)))
        customer = Writer(session.chain, Sender(session.chain, Wallet.load(grid.keys / names[1])))
        await operator.mint(customer.address, 1000 * CREDIT)
        yield Scene(session, operator, customer)
        await operator.sender.close()
        await customer.sender.close()


@pytest.fixture
async def approved(scene: Scene) -> AsyncIterator[Scene]:
    """A provider that may claim jobs. Its jobs are removed from Slurm after the test."""
    await register(scene.session)
    await approve_waiting(scene.operator, scene.session.address)
    yield scene
    for job_id in await scene.session.chain.claimed_jobs(scene.session.address):
        await scene.session.cluster.cancel(scene.session.key_of(await scene.session.chain.job(job_id)))


@pytest.fixture
async def key(approved: Scene) -> JobKey:
    """A job that the provider has claimed."""
    return await approved.claimed()
