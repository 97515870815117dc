"""Deploying twice is deploying once."""

from __future__ import annotations

from deepgrid.chain.client import Chain
from deepgrid.chain.deploy import deploy
from deepgrid.chain.wallet import Wallet
from tests.chain.grid import Grid


async def test_standing_grid_is_kept_and_gets_missing_roles(grid: Grid) -> None:
    admin = Wallet.load(grid.operator_key)
    second = grid.new_key("second-operator").address
    kept = await deploy(grid.anvil.url, admin, second, standing=grid.book)
    assert (kept.meta_scheduler, kept.credit) == (grid.book.meta_scheduler, grid.book.credit)
    assert (kept.provider_manager, kept.first_block) == (grid.book.provider_manager, grid.book.first_block)
    async with await Chain.connect(grid.book) as chain:
        assert await chain.has_role("METASCHEDULER_ROLE", second)
        assert await chain.has_role("METASCHEDULER_ROLE", second, "ProviderManager")
        head = (await chain.head()).number
        assert await deploy(grid.anvil.url, admin, second, standing=grid.book) == kept
        assert (await chain.head()).number == head


async def test_book_of_a_lost_chain_does_not_hinder(grid: Grid) -> None:
    admin = Wallet.load(grid.operator_key)
    lost = grid.book.model_copy(update={"credit": "0x" + "ab" * 20})
    fresh = await deploy(grid.anvil.url, admin, admin.address, standing=lost)
    assert fresh.meta_scheduler != grid.book.meta_scheduler
    found = grid.book.model_copy(
        update={name: getattr(fresh, name) for name in ("credit", "provider_manager", "meta_scheduler", "first_block")}
    )
    async with await Chain.connect(found) as chain:
        assert await chain.has_role("METASCHEDULER_CONTRACT_ROLE", fresh.meta_scheduler, "ProviderManager")
        assert await chain.job_count() == 0
