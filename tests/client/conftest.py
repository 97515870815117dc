"""Fixtures for tests of the client: a live grid, its parties, and a customer."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client import AsyncGrid
from deepgrid.lifecycle.job import Label
from tests.cli.conftest import chain as chain
from tests.cli.conftest import live as live
from tests.cli.conftest import operator as operator
from tests.cli.conftest import provider as provider
from tests.cli.live import CREDIT, Live, Party
from tests.client.stage import Customer, Stage
from tests.client.support import SimulatedCluster, simulated_cluster

_number = itertools.count()


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
