"""Clusters that let jobs down, several customers, and an operator that is killed in the middle of a round."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from signal import SIGCONT, SIGSTOP

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.client.order import read_order
from deepgrid.client.session import CustomerSettings, customer_session
from deepgrid.lifecycle.job import Hardware, Label, Prices
from deployments.onemachine.grid import LocalGrid
from deployments.onemachine.slurm import PARTITION
from tests.chain.grid import approve_waiting
from tests.grid.customer import LOCKED_WEI, PATIENCE_S
from tests.grid.runs import api, runs_of
from tests.grid.writers import writer_of

ROUND = "meta_schedule/grid"
OPERATOR, STANDBY = "operator", "operator-second"
GAS_WEI = 10**18


@dataclass(frozen=True)
class Buyer:
    """A customer with a key, credits and accounts on the clusters."""

    grid: LocalGrid
    key: Path

    @property
    def address(self) -> str:
        return Wallet.load(self.key).address

    async def submit(self, file: Path, count: int) -> list[int]:
        """Request `count` jobs at once. Returns their ids."""
        order = read_order(file, LOCKED_WEI)
        async with customer_session(CustomerSettings(self.key, self.grid.book)) as session:
            stored = await asyncio.gather(*(session.store(order) for _ in range(count)))
            return await session.request_all([(order, one) for one in stored])


async def new_buyer(grid: LocalGrid, key: Path, jobs: int) -> Buyer:
    """Return a new customer who can pay for this many jobs."""
    address = Wallet.create(key).address
    await asyncio.to_thread(grid.roles.make_accounts, address)
    async with writer_of(grid, "admin") as admin:
        await admin.give_gas_money(address, GAS_WEI)
        await admin.mint(address, jobs * LOCKED_WEI)
    return Buyer(grid, key)


@asynccontextmanager
async def cluster_without_supervisor(grid: LocalGrid, key: Path, name: str, cpus: int) -> AsyncIterator[str]:
    """Run the cheapest cluster of the grid, which claims none of its jobs. Yields its address."""
    wallet = Wallet.create(key)
    prices = Prices(gpu_wei_per_minute=0, cpu_wei_per_minute=9 * 10**17, mem_wei_per_mb_minute=0)
    async with await Chain.connect(AddressBook.load(grid.book)) as chain, writer_of(grid, "operator") as operator:
        sender = Sender(chain, wallet)
        try:
            await operator.give_gas_money(wallet.address, GAS_WEI)
            await Writer(chain, sender).register(
                Hardware((0,), (cpus,), (8000,)), prices, (Label("name", name), Label("os", "linux"))
            )
            await approve_waiting(operator, wallet.address)
            yield wallet.address
        finally:
            await sender.close()
            await operator.remove_provider(wallet.address)


@contextmanager
def refusing_slurm(grid: LocalGrid, cluster: str) -> Iterator[None]:
    """Let the cluster's Slurm refuse jobs from all hosts, so that its supervisor gives all claims back."""
    _scontrol(grid, cluster, "AllocNodes=nowhere")
    try:
        yield
    finally:
        _scontrol(grid, cluster, "AllocNodes=ALL")


@asynccontextmanager
async def second_operator(grid: LocalGrid) -> AsyncIterator[None]:
    """Run a second operator process with the same key on standby. Afterwards the first one serves alone."""
    grid.table.start(replace(grid.roles.operator(), name=STANDBY, ready=lambda: True))
    try:
        async with asyncio.timeout(PATIENCE_S):
            while "standing by" not in grid.table.log_path(STANDBY).read_text():
                await asyncio.sleep(0.5)
        yield
    finally:
        grid.table.stop(STANDBY)
        await asyncio.to_thread(grid.start, OPERATOR)


@contextmanager
def suspended_operator(grid: LocalGrid) -> Iterator[None]:
    """Suspend the operator during the context."""
    pid = grid.table.pid(OPERATOR)
    assert pid is not None
    os.kill(pid, SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, SIGCONT)


async def kill_in_a_round(grid: LocalGrid) -> str:
    """Kill the operator while a round is under way. Returns the id of its run."""
    async with asyncio.timeout(PATIENCE_S), api(grid) as client:
        while True:
            for run in await runs_of(grid, ROUND, "RUNNING"):
                with suspended_operator(grid):
                    now = (await client.get(f"flow_runs/{run['id']}")).raise_for_status().json()
                    if now["state"]["type"] == "RUNNING":
                        grid.kill(OPERATOR)
                        return str(run["id"])
            await asyncio.sleep(0.02)


async def rows_of_rounds(grid: LocalGrid, since: str) -> Sequence[str]:
    """Return the tables that rounds have published since then, as text."""
    wanted = {"artifacts": {"key": {"any_": ["meta-schedule-round"]}}, "limit": 200, "sort": "CREATED_DESC"}
    async with api(grid) as client:
        found = (await client.post("artifacts/filter", json=wanted)).raise_for_status().json()
    return [one["data"] for one in found if one["created"] >= since]


def _scontrol(grid: LocalGrid, cluster: str, change: str) -> None:
    environment = {**os.environ, **grid.slurm.environment(cluster)}
    command = ["scontrol", "update", f"PartitionName={PARTITION}", change]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=PATIENCE_S)
