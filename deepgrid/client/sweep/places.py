"""How many jobs of a sweep may be requested now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sized

from deepgrid.billing.credits import format_credits
from deepgrid.chain.batches import MOST_AT_ONCE
from deepgrid.client.engine.connection import Connection
from deepgrid.errors import InputError


class Places:
    """The free places of a sweep. The limits are its jobs at once, its budget and the customer's credits.

    Places are filled a quarter at a time, or after `refill_s` seconds, so that few transactions are needed.
    """

    def __init__(self, connection: Connection, credits_wei: int, at_once: int, most_wei: int | None) -> None:
        self._connection = connection
        self._credits_wei = credits_wei
        self._limit = at_once if most_wei is None else min(at_once, most_wei // credits_wei)

    async def wait(self, missing: int, hot: Sized, change: Callable[[], asyncio.Event]) -> int:
        """Wait for free places; returns how many jobs to request.

        Args:
            missing: Number of jobs that are not requested yet.
            hot: The jobs that are not over. It may change meanwhile.
            change: Gives an event that is set when a job ended.

        Raises:
            InputError: There are too few credits for one job, and no job is hot that may return some.
        """
        clock, refill_s = asyncio.get_running_loop().time, self._connection.settings.refill_s
        enough = min(missing, -(-self._limit // 4))
        due: float | None = None
        while True:
            changed = change()
            free = min(self._limit - len(hot), missing, MOST_AT_ONCE)
            if free >= enough or (free > 0 and due is not None and clock() >= due):
                affordable = await self.affordable()
                if affordable >= min(free, enough) or (affordable and due is not None and clock() >= due):
                    return min(free, affordable)
                if not affordable and not len(hot):
                    raise await self._too_few_credits(missing)
            if free > 0 and due is None:
                due = clock() + refill_s
            await _pause(changed, refill_s if due is None else max(0.05, due - clock()))

    async def affordable(self) -> int:
        """Number of jobs that the customer's credits suffice for now."""
        return await self._balance() // self._credits_wei

    async def _balance(self) -> int:
        chain, address = self._connection.chain, self._connection.session.address
        return await self._connection.patiently(lambda: chain.balance(address), forever=True)

    async def _too_few_credits(self, missing: int) -> InputError:
        needed, has = format_credits(self._credits_wei), format_credits(await self._balance())
        return InputError(
            f"{needed} credits cannot be locked; {self._connection.session.address} has {has}. {missing} jobs were not"
            " requested.",
            next_step="Get more credits, then continue the sweep with its key.",
        )


async def _pause(changed: asyncio.Event, pause_s: float) -> None:
    try:
        async with asyncio.timeout(pause_s):
            await changed.wait()
    except TimeoutError:
        pass
