"""Fixtures: development chains with the real contracts, and people who use them."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from deepgrid.chain.client import Chain
from deepgrid.chain.node.node import Node
from tests.chain.anvil import Anvil
from tests.chain.bare import REWIND_S, Bare
from tests.chain.grid import Grid, People, gather_people, running_grid

_label = itertools.count()


@pytest.fixture(scope="session")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    """One grid for all tests that do not damage the chain. Each transaction is mined at once."""
    with running_grid(tmp_path_factory.mktemp("chain")) as grid:
        yield grid


@pytest.fixture
def own_grid(tmp_path: Path) -> Iterator[Grid]:
    """A grid for one test: its chain may be reorganised and its node restarted. It keeps its state."""
    with running_grid(tmp_path / "own", keep_state=True) as grid:
        yield grid


@pytest.fixture
async def chain(grid: Grid) -> AsyncIterator[Chain]:
    async with await Chain.connect(grid.book) as connected:
        connected.own_writes.patience_s = REWIND_S
        yield connected


@pytest.fixture
async def people(grid: Grid, chain: Chain) -> People:
    return await gather_people(grid, chain, f"t{next(_label)}")


@pytest.fixture
async def own_people(own_grid: Grid) -> AsyncIterator[People]:
    """People on a chain of their own, with a block every second."""
    async with await Chain.connect(own_grid.book) as connected:
        people = await gather_people(own_grid, connected, "own")
        connected.own_writes.patience_s = REWIND_S
        own_grid.anvil.mine_every_second()
        yield people


@pytest.fixture(scope="module")
def idle_anvil(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Anvil]:
    anvil = Anvil(tmp_path_factory.mktemp("idle"), idle=True)
    anvil.start()
    try:
        yield anvil
    finally:
        anvil.stop()


@pytest.fixture
async def bare(idle_anvil: Anvil, tmp_path: Path) -> AsyncIterator[Bare]:
    async with await Node.at(idle_anvil.url) as node:
        found = Bare(idle_anvil, node, tmp_path)
        yield found
        await found.sender.close()
