"""The customer's wallet: credits, the allowance of the grid, and the currency that pays for transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from decimal import Decimal

from eth_utils.address import is_checksum_address

from deepgrid.billing.credits import format_credits
from deepgrid.client.display.html import wallet_html
from deepgrid.client.engine.connection import Connection
from deepgrid.client.job_values import TOO_FEW_CREDITS, Credits, credits_of, wei_of
from deepgrid.errors import ChainError, ContractError, InputError


class AsyncWallet:
    """The balances of one address. `AsyncGrid.wallet` is the customer's."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], address: str) -> None:
        self._connect = connect
        self._address = address

    @property
    def address(self) -> str:
        """The address."""
        return self._address

    @property
    async def credits(self) -> Decimal:
        """Credits that can be spent. Deposits of jobs that are not over are not part of it."""
        connection = await self._connect()
        return credits_of(await connection.reads.balance(self.address))

    @property
    async def allowance(self) -> Decimal:
        """Credits that the grid may lock for jobs and top-ups."""
        connection = await self._connect()
        return credits_of(await connection.reads.allowance(self.address))

    @property
    async def gas(self) -> Decimal:
        """The chain's own currency, which pays for transactions, in units of 10**18 wei."""
        connection = await self._connect()
        return credits_of(await connection.reads.gas_money(self.address))

    async def set_allowance(self, amount: Credits) -> str:
        """Let the grid lock up to `amount` of your credits.

        Args:
            amount: Credits; 0 takes the allowance back.

        Returns:
            Hash of the transaction.

        Raises:
            InputError: The amount is not exact.
            ChainError: The node does not answer.
        """
        connection = await self._connect()
        async with connection.spending:
            return (await connection.session.writer.approve(wei_of(amount))).tx_hash

    async def transfer(self, to: str, amount: Credits) -> str:
        """Send credits to another address.

        Args:
            to: The address, with its checksum.
            amount: Credits.

        Returns:
            Hash of the transaction.

        Raises:
            InputError: The address has no valid checksum, or the amount is not exact.
            ContractError: There are too few credits.
            ChainError: The node does not answer.
        """
        receiver, given_wei = checked_address(to), wei_of(amount)
        connection = await self._connect()
        try:
            return (await connection.session.writer.transfer(receiver, given_wei)).tx_hash
        except ContractError as error:
            if error.name != TOO_FEW_CREDITS:
                raise
            needed, held = format_credits(given_wei), format_credits(await connection.chain.balance(self.address))
            words, about = f"{needed} credits are needed; {self.address} has {held}.", error.args_by_name
            raise ContractError(words, name=error.name, args_by_name=about, next_step="Give fewer.") from None

    def _repr_html_(self) -> str:
        return wallet_html(self.address)  # a display cannot await balances; the sync class shows them

    async def _html(self) -> str:
        """Return the display of the sync class. While the node does not answer, it has the address only."""
        try:
            balances = await asyncio.gather(self.credits, self.allowance, self.gas)
        except ChainError:
            return wallet_html(self.address)
        return wallet_html(self.address, *balances)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address})"


def checked_address(text: str) -> str:
    """`text`, if it is an address with its checksum. Raises InputError."""
    if not is_checksum_address(text):
        raise InputError(f"{text[:60]!r} is not an address with its checksum.", next_step="Copy the whole address.")
    return text
