"""A customer's purse: whether credits can be locked, and an allowance of exactly what a transaction locks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from deepgrid.billing.credits import format_credits
from deepgrid.chain.writer import Writer
from deepgrid.errors import ContractError, InputError

T = TypeVar("T")


class Purse:
    """The credits of the customer who owns `writer`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def check(self, amount_wei: int, balance: int, allowance: int | None) -> None:
        """Raise InputError when `amount_wei` cannot be locked. An `allowance` of None is not checked."""
        locked = format_credits(amount_wei)
        if amount_wei > balance:
            raise InputError(
                f"{locked} credits cannot be locked; {self._writer.address} has {format_credits(balance)}.",
                next_step="Lock fewer, or get more credits.",
            )
        if allowance is not None and amount_wei > allowance:
            raise InputError(
                f"The allowance is {format_credits(allowance)} credits; {locked} are needed, and this call may not"
                " change it.",
                next_step=f"Run `dps allowance set {locked}`, or omit --no-approve.",
            )

    def check_minimum(self, locked_wei: int, minimum_wei: int) -> None:
        """Raise InputError when a job would lock less than the contract's minimum."""
        if locked_wei < minimum_wei:
            locked, minimum = format_credits(locked_wei), format_credits(minimum_wei)
            raise InputError(f"{locked} credits are too few.", next_step=f"Lock at least {minimum}.")

    async def locking(self, amount_wei: int, send: Callable[[int | None], Awaitable[T]], *, approve: bool) -> T:
        """Send a transaction that locks `amount_wei`. `send` gets the allowance to set first, or None.

        With `approve`, an allowance that is too low is set to exactly `amount_wei`. It is restored when the
        contract refuses.
        """
        allowance = await self._writer.chain.allowance(self._writer.address)
        short = approve and allowance < amount_wei
        try:
            return await send(amount_wei if short else None)
        except ContractError as error:
            if short:
                await self._writer.approve(allowance)
            elif approve and error.name == "ERC20InsufficientAllowance":  # another submission has used it up
                return await send(amount_wei)
            raise
