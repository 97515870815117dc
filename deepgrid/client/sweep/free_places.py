"""How many jobs of a sweep may be requested now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sized

from deepgrid.billing.credits import format_credits
from deepgrid.chain.batches import MOST_AT_ONCE
from deepgrid.client.engine.connection import Connection
from deepgrid.client.settings import wait_until_set
from deepgrid.errors import InputError


class Capacity:
    """Limits the number of jobs that a sweep may request now, by its settings and the customer's credits.

    Places are filled a quarter at a time, or after `refill_s` seconds, so that few transactions are needed.
    """

    def __init__(self, connection: Connection, credits_wei: int, at_once: int, most_wei: int | None) -> None:
        self._connection = connection
        self._credits_wei = credits_wei
        self._limit = at_once if most_wei is None else min(at_once, most_wei // credits_wei)

    async def wait(self, missing: int, hot: Sized, change: Callable[[], asyncio.Event]) -> int:
        """Wait for free places; returns how many of the `missing` jobs to request.

        `hot` are the jobs that are not over, and `change` gives an event that is set when one ends. Raises InputError
        if there are too few credits for one job, and no job is hot that may return some.
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
            await wait_until_set(changed, refill_s if due is None else max(0.05, due - clock()))

    async def affordable(self) -> int:
        """Return the number of jobs that the customer's credits suffice for now."""
        return await self._balance() // self._credits_wei

    async def _balance(self) -> int:
        return await self._connection.reads_forever.balance(self._connection.session.address)

    async def _too_few_credits(self, missing: int) -> InputError:
        needed, has = format_credits(self._credits_wei), format_credits(await self._balance())
        return InputError(
            f"{needed} credits cannot be locked; {self._connection.session.address} has {has}. {missing} jobs were not"
            " requested.",
            next_step="Get more credits, then continue the sweep with its key.",
        )
