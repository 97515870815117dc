"""Things that the supervisor cleans up: the leftovers of two customers' claims, and storage roots of jobs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.sbatch import StoragePaths
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import CustomerAccounts, LoginSettings
from tests.slurm.ordinary import ordinary_supervisor
from tests.slurm.people import account
from tests.slurm.support import SMALL, Box

CUSTOMER, OTHER = "0x" + "a" * 40, "0x" + "b" * 40
OF_CUSTOMER, OF_OTHER = (replace(SMALL, customer=customer) for customer in (CUSTOMER, OTHER))
JOB = "a job's account"


@pytest.fixture(scope="module")
def customers() -> Iterator[CustomerAccounts]:
    with account() as name, account() as other:
        yield CustomerAccounts({CUSTOMER: name, OTHER: other})


@pytest.fixture(scope="module")
def by_sudo(box: Box, state_folder: Path, customers: CustomerAccounts) -> Iterator[LoginSettings]:
    """A supervisor without root that becomes its customers' accounts by sudo."""
    folder = Path(tempfile.mkdtemp(dir=state_folder))
    folder.chmod(0o755)
    with ordinary_supervisor(box, folder, customers) as settings:
        yield settings


@pytest.fixture(params=["root", "sudo"])
async def either(request: pytest.FixtureRequest, box: Box, customers: CustomerAccounts) -> AsyncIterator[Cluster]:
    """The cluster of a supervisor that runs as root, or that uses sudo."""
    by_root = replace(box.settings, job_account=None, accounts=customers)
    settings = request.getfixturevalue("by_sudo") if request.param == "sudo" else by_root
    for name in ("removed", "leaders", "batch"):  # the other supervisor may have created them
        place = Path(settings.grid_root) / name
        place.mkdir(mode=0o711, exist_ok=True)
        shutil.chown(place, settings.user)
    login = Login(settings)
    yield Cluster(login, settings)
    await login.close()


@pytest.fixture
def storage(state_folder: Path) -> StoragePaths:
    """Storage roots in which every account may create folders."""
    paths = StoragePaths.under(tempfile.mkdtemp(dir=state_folder))
    Path(paths.job).parent.chmod(0o755)
    for root in paths.roots:
        Path(root).mkdir()
        Path(root).chmod(0o1777)
    return paths


@pytest.fixture
def precious(state_folder: Path) -> Path:
    """A folder of the provider with a file."""
    folder = Path(tempfile.mkdtemp(dir=state_folder, prefix="precious-"))
    (folder / "file").write_text("kept")
    return folder
