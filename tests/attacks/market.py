"""Real contracts on a real node, their users, and calls that the project's clients never make."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from deepgrid.chain.client import Chain
from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.values import coded_hardware, coded_labels, coded_prices
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.transaction import Call, Receipt
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.errors import ContractError
from deepgrid.lifecycle.job import Hardware, Label, Prices
from tests.chain.grid import CREDIT, Grid, People, gather_people

BLOCK_GAS = 30_000_000


@dataclass(frozen=True)
class Market:
    """The honest users of a grid, and any number of strangers."""

    grid: Grid
    people: People

    @property
    def chain(self) -> Chain:
        return self.people.chain

    async def stranger(self, name: str, credits: int = 0) -> Writer:
        """Return a stranger with gas money and with credits that the grid may spend."""
        writer = Writer(self.chain, Sender(self.chain, self.grid.new_key(f"{name}-{self.people.customer.address}")))
        if credits:
            await self.people.operator.mint(writer.address, credits * CREDIT)
            await writer.approve(credits * CREDIT)
        return writer

    async def call(self, who: Writer, contract: str, function: str, *args: Any, gas: int | None = None) -> Receipt:
        """Send a call with any arguments. Raises ContractError when the contract refuses it."""
        data = interface(contract).encode(function, *args)
        return await self.send(who, contract, data, gas)

    async def send(self, who: Writer, contract: str, data: str, gas: int | None = None) -> Receipt:
        return await who.sender.send(Call("an attack", self.chain.book.contracts[contract], data), gas=gas)

    async def refusal(self, who: Writer, contract: str, function: str, *args: Any) -> str:
        """Return the name of the contract's error for the call; empty when the call passes."""
        try:
            await self.call(who, contract, function, *args)
        except ContractError as error:
            return error.name
        return ""

    async def proposal(
        self, who: Writer, hardware: Hardware, prices: Prices, labels: tuple[Label, ...], gas: int | None = None
    ) -> Receipt:
        """Send a proposal with any content."""
        arguments = coded_hardware(hardware), coded_prices(prices), coded_labels(labels)
        return await self.call(who, "ProviderManager", "register", *arguments, gas=gas)

    async def claimed(self, locked_wei: int) -> int:
        """Return a job of the customer that the provider has claimed."""
        job_id = await self.people.assigned(locked_wei)
        await self.people.provider.claim_next()
        return job_id


@asynccontextmanager
async def open_market(grid: Grid, label: str) -> AsyncIterator[Market]:
    """Yield the users of one test on that grid; `label` names their keys."""
    async with await Chain.connect(grid.book) as chain:
        market = Market(grid, await gather_people(grid, chain, label))
        yield market
        await market.people.rest()


def operator_wallet(grid: Grid) -> Wallet:
    """Return the writer whose key approves providers and owns the constants."""
    return Wallet.load(grid.operator_key)
