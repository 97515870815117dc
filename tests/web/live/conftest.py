"""One live grid for all tests of this folder: a chain, the services with their web app, one cluster, a browser."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from tests.chain.grid import approve_waiting
from tests.cli.live import CREDIT, HARDWARE, LABELS, PRICES, party
from tests.web.live.stage import CHROMIUM, QUIET, Hosted, Stage, hosted_grid
from tests.web.live.wallet import TestWallet

_label = itertools.count()


@pytest.fixture(scope="session")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    with hosted_grid(tmp_path_factory.mktemp("web")) as hosted:
        yield hosted


@pytest_asyncio.fixture(loop_scope="session")
async def stage(hosted: Hosted, tmp_path: Path) -> AsyncIterator[Stage]:
    """A new customer with 1,000 credits and a new cluster for one test."""
    grid = hosted.grid
    async with await Chain.connect(grid.book) as chain:
        label = f"w{next(_label)}"
        customer, provider = grid.new_key(f"{label}-customer"), party(chain, grid.new_key(f"{label}-provider"))
        operator = party(chain, Wallet.load(grid.operator_key))
        await operator.writer.mint(customer.address, 1000 * CREDIT)
        await provider.writer.register(HARDWARE, PRICES, LABELS)
        await approve_waiting(operator.writer, provider.address)
        yield Stage(hosted, chain, operator, provider, TestWallet(chain, customer))
        await operator.writer.remove_provider(provider.address)
        await provider.close()
        await operator.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all tests: each has its own context, so its own storage."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        await browser.close()
