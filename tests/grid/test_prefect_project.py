"""The example project of another Prefect user, outside the checkout, with blocks of its own."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from blocks import Customer as CustomerBlock
from blocks import Grid, SlurmLogin, Wallet
from deepgrid.chain.transactions.wallet import Wallet as KeyFile
from deepgrid.lifecycle.states import JobStatus
from tests.grid.customer import PATIENCE_S, Customer
from tests.grid.support import cold

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

PROJECT = Path(__file__).parents[2] / "examples" / "prefect"


async def make_blocks(customer: Customer) -> None:
    """Make the blocks that the project's README asks for. The customer's own cluster is alpha, without the grid's
    customers.
    """
    alpha = await SlurmLogin.aload("alpha")
    own = SlurmLogin(
        host=alpha.host,
        port=alpha.port,
        user=alpha.user,
        key_file=alpha.key_file,
        known_hosts_file=alpha.known_hosts_file,
        grid_root=alpha.grid_root,
        storage_root=alpha.storage_root,
        partition=alpha.partition,
        job_account=alpha.own_account or alpha.job_account,
    )
    await own.asave("mine")
    key = customer.grid.keys.file("customer")
    wallet = Wallet(address=KeyFile.load(key).address, key_file=key)
    await CustomerBlock(grid=Grid(address_book=customer.grid.book), wallet=wallet).asave("me")


@pytest.mark.usefixtures("prefect_api")
def test_a_flow_of_another_project_uses_its_own_cluster_and_the_grid(customer: Customer, tmp_path: Path) -> None:
    asyncio.run(make_blocks(customer))
    project = shutil.copytree(PROJECT, tmp_path / "project")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= customer.grid.prefect.environment()
    done = subprocess.run(
        [sys.executable, "study.py"], cwd=project, env=environment, capture_output=True, text=True,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert re.search(r"calibrated on \S+", told), told
    submitted = re.search(r"Job (\d+) is submitted\.", told)
    assert submitted, told
    job = asyncio.run(customer.until(int(submitted[1]), cold))
    assert (job.status, job.name, job.exit_status) == (JobStatus.FINISHED, "simulate", 0)
