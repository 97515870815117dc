"""Fixtures for tests of the client: a live grid, its parties, and a customer."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client import AsyncGrid, AsyncJob
from deepgrid.lifecycle.job import Label
from tests.cli.conftest import chain as chain
from tests.cli.conftest import live as live
from tests.cli.conftest import operator as operator
from tests.cli.conftest import provider as provider
from tests.cli.live import CREDIT, Live, Party
from tests.client.support import SimulatedCluster, simulated_cluster

_number = itertools.count()


@dataclass(frozen=True)
class Customer:
    """A customer with 1,000 credits: the key file, and the address book."""

    key: Path
    book: Path


@pytest.fixture
async def customer(live: Live, operator: Party) -> Customer:
    name = f"client-{next(_number)}"
    wallet = live.grid.new_key(name)
    await operator.writer.mint(wallet.address, 1000 * CREDIT)
    return Customer(live.grid.keys / name, live.book)


@pytest.fixture
async def grid(customer: Customer) -> AsyncIterator[AsyncGrid]:
    async with AsyncGrid(customer.key, customer.book) as opened:
        yield opened


@dataclass(frozen=True)
class Stage:
    """Moves a job of the live grid through its states, as the operator and a provider do."""

    operator: Party
    provider: Party

    async def run(self, job: AsyncJob) -> None:
        """Assign the job to the cluster alpha, which claims and starts it."""
        await self.operator.writer.meta_schedule(job.id, self.provider.address)
        await self.provider.writer.claim_next()
        await self.provider.writer.set_running(job.id, 0)


@pytest.fixture
def stage(operator: Party, provider: Party) -> Stage:
    return Stage(operator, provider)


@pytest.fixture
def cluster(live: Live, customer: Customer) -> Iterator[SimulatedCluster]:
    """A cluster that runs all jobs of the customer."""
    address, labels = Wallet.load(customer.key).address, (Label("gpu", "nvidia-a100"),)
    simulated = SimulatedCluster(live, address, f"simulated-{next(_number)}", labels=labels)
    with simulated_cluster(simulated):
        yield simulated
