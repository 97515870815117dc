"""A cluster with two customers. Its login node is also a compute node. The supervisor is root, or has the wrapper."""

from __future__ import annotations

import asyncio
import fcntl
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import CustomerAccounts, LoginSettings
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deployments.onemachine.slurm import ClusterSpec
from tests.attacks.on_slurm import ALICE, BOB, Person
from tests.slurm.ordinary import hook_for, ordinary_supervisor
from tests.slurm.people import account, wallet_account
from tests.slurm.support import SMALL, WAIT_FOR_LEAVE, WAIT_S, Box, bash, new_key, printed, running_box

WORK = f"echo works; {WAIT_FOR_LEAVE}"


@dataclass(frozen=True)
class Ground:
    """A cluster with two customers, and the supervisor's login there."""

    box: Box
    settings: LoginSettings
    alice: Person
    bob: Person

    def state(self, slurm_id: int) -> str:
        return self.box.slurm("squeue", "-h", "-a", "-t", "all", "-j", str(slurm_id), "-o", "%T").strip()


def of(customer: str) -> SubmitRequest:
    return replace(SMALL, customer=customer)


@pytest.fixture(scope="module")
def blocked() -> Iterator[tuple[Box, str, str]]:
    with ExitStack() as stack:
        box = stack.enter_context(running_box(ClusterSpec("blocked", nodes=2, cpus_per_node=32, private=False)))
        yield box, stack.enter_context(account()), stack.enter_context(wallet_account())


@pytest.fixture(scope="module", params=["root", "wrapper"])
def ground(request: pytest.FixtureRequest, blocked: tuple[Box, str, str]) -> Iterator[Ground]:
    box, alice, bob = blocked
    accounts = CustomerAccounts({ALICE: alice, BOB: bob})
    with ExitStack() as stack:
        if request.param == "root":
            settings = replace(box.settings, job_account=None, accounts=accounts)
            stack.enter_context(hook_for(box, settings))
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dg-blocked-")))
            folder.chmod(0o755)
            settings = stack.enter_context(ordinary_supervisor(box, folder, accounts))
        yield Ground(box, settings, Person(box, alice), Person(box, bob))


@pytest.fixture
async def cluster(ground: Ground) -> AsyncIterator[Cluster]:
    login = Login(ground.settings)
    yield Cluster(login, ground.settings)
    await login.close()


@pytest.fixture
async def monitor(cluster: Cluster) -> AsyncIterator[SlurmMonitor]:
    monitor = SlurmMonitor(cluster, poll_s=0.2)
    yield monitor
    await monitor.close()


async def runs(cluster: Cluster, customer: str, body: str = WORK) -> JobKey:
    """Return a claim of the customer whose payload runs."""
    key = new_key()
    await cluster.submit(key, bash(body), of(customer))
    await printed(cluster, key)
    return key


async def all_recorded(cluster: Cluster, *keys: JobKey) -> None:
    """Wait until the spool has the ends of these claims."""
    async with asyncio.timeout(WAIT_S):
        while not all(map((await cluster.snapshot(keys)).ended, keys)):
            await asyncio.sleep(0.1)


@contextmanager
def locked(*folders: Path) -> Iterator[None]:
    """Hold the locks of these claims."""
    with ExitStack() as stack:
        for folder in folders:
            fcntl.flock(stack.enter_context((folder / "lock").open("a")), fcntl.LOCK_EX)
        yield
