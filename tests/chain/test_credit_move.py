"""Credits move once, even if holders buy new ones meanwhile or the mint of a killed run is still pending."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepgrid.chain.client import Chain
from deepgrid.chain.deploy.retirement import move_credits, retire
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.errors import ConfigurationError
from tests.chain.grid import CREDIT, Grid, build, gather_people, running_grid

HELD_WEI, BOUGHT_WEI = 10_000 * CREDIT, 50 * CREDIT


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Grid]:
    with running_grid(tmp_path / "chain") as running:
        yield running


async def begin_new(old: Grid, folder: Path) -> Grid:
    return await asyncio.to_thread(build, old.anvil, folder / "new-keys")


def minter_of(grid: Grid, chain: Chain) -> Writer:
    return Writer(chain, Sender(chain, Wallet.load(grid.operator_key)))


async def is_on_its_way(chain: Chain, address: str) -> bool:
    mined, sent = await chain.transaction_counts(address)
    return mined < sent


async def test_credits_that_a_holder_bought_first_come_on_top(old: Grid, tmp_path: Path) -> None:
    async with await Chain.connect(old.book) as chain:
        holder = (await gather_people(old, chain, "old")).customer.address
    new, told = await begin_new(old, tmp_path), list[str]()
    async with await Chain.connect(new.book) as chain:
        minter = minter_of(new, chain)
        await minter.mint(holder, BOUGHT_WEI)
        assert [await move_credits(old.book, minter, chain, told.append) for _ in range(2)] == [HELD_WEI, 0]
        assert await chain.balance(holder) == HELD_WEI + BOUGHT_WEI
    assert told == [f"{holder} has its credits of the old grid."]


async def test_a_mint_on_its_way_is_not_sent_again(old: Grid, tmp_path: Path) -> None:
    async with await Chain.connect(old.book) as chain:
        holder = (await gather_people(old, chain, "old")).customer.address
    new = await begin_new(old, tmp_path)
    async with await Chain.connect(new.book) as chain:
        old.anvil.call("evm_setAutomine", False)
        killed = minter_of(new, chain)
        mint = asyncio.create_task(killed.mint(holder, HELD_WEI))
        while not await is_on_its_way(chain, killed.address):
            await asyncio.sleep(0.05)
        await killed.sender.close()
        await asyncio.gather(mint, return_exceptions=True)
        again = asyncio.create_task(move_credits(old.book, minter_of(new, chain), chain, lambda _: None))
        done, _ = await asyncio.wait([again], timeout=1)  # it waits until the mint is mined
        assert not done
        old.anvil.call("evm_setAutomine", True)
        old.anvil.mine()
        assert await again == 0
        assert await chain.balance(holder) == HELD_WEI


async def test_new_contracts_that_began_too_early_must_be_deployed_again(old: Grid, tmp_path: Path) -> None:
    async with await Chain.connect(old.book) as chain:
        people = await gather_people(old, chain, "old")
        job_id = await people.request()
        new = await begin_new(old, tmp_path)
        await people.customer.cancel_job(job_id)
    async with await Chain.connect(new.book) as chain:
        with pytest.raises(ConfigurationError, match="deployed before the old grid was retired") as raised:
            await move_credits(old.book, minter_of(new, chain), chain, lambda _: None)
    assert "dps operator deploy" in str(raised.value.next_step)


async def test_credits_that_a_stranger_sends_to_the_contract_stop_no_move(old: Grid, tmp_path: Path) -> None:
    async with await Chain.connect(old.book) as chain:
        people = await gather_people(old, chain, "old")
        await people.customer.transfer(old.book.meta_scheduler, 1)
        assert await retire(minter_of(old, chain), chain, lambda _: None) == 1
    new = await begin_new(old, tmp_path)
    async with await Chain.connect(new.book) as chain:
        with pytest.raises(ConfigurationError, match="holds 1 wei of deposits, of the platform's cut, or sent"):
            await move_credits(old.book, minter_of(new, chain), chain, lambda _: None)
        moved_wei = await move_credits(old.book, minter_of(new, chain), chain, lambda _: None, 1)
        assert await chain.balance(people.customer.address) == moved_wei == HELD_WEI - 1
