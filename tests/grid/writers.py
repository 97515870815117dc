"""Transactions of tests on the chain of the whole grid, with the keys of its roles."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.node.values import Constants
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deployments.onemachine.grid import LocalGrid


@asynccontextmanager
async def writer_of(grid: LocalGrid, name: str) -> AsyncIterator[Writer]:
    """Yield the writer with the key of `admin`, `operator`, `customer` or a cluster."""
    async with await Chain.connect(AddressBook.load(grid.book)) as chain:
        sender = Sender(chain, Wallet.load(grid.keys.file(name)))
        try:
            yield Writer(chain, sender)
        finally:
            await sender.close()


@asynccontextmanager
async def changed_constants(grid: LocalGrid, *, claim_timeout: int = 0, top_up_slice: int = 0) -> AsyncIterator[None]:
    """Change constants of the contract (in minutes) for the duration of the context; 0 keeps the current value."""
    async with writer_of(grid, "admin") as admin:
        before: Constants = await admin.chain.constants()
        changed = [
            (setter, value, standing)
            for setter, value, standing in (
                ("setClaimJobTimeout", claim_timeout, before.claim_timeout_minutes),
                ("setTopUpSliceDurationMin", top_up_slice, before.top_up_slice_minutes),
            )
            if value
        ]
        try:
            for setter, value, _ in changed:
                await admin.set_constant(setter, value)
            yield
        finally:
            for setter, _, standing in changed:
                await admin.set_constant(setter, standing)
