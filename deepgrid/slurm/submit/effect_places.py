"""Places for commands that act on jobs, so that the commands for one customer cannot delay those for others."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

PER_ACCOUNT = 3
KEPT_FREE = 3  # channels of the login for polling and other queries


class Places:
    """At most PER_ACCOUNT commands at once per Unix account, and KEPT_FREE fewer than the login has channels.

    Snapshots tell which account a claim belongs to.
    """

    def __init__(self, channels: int) -> None:
        self._all = asyncio.Semaphore(max(1, channels - KEPT_FREE))
        self._by_account: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(PER_ACCOUNT))
        self._accounts: dict[str, str] = {}

    def learn(self, accounts: Mapping[str, str]) -> None:
        """Note the accounts of claims, by the claim's comment."""
        self._accounts.update(accounts)

    def forget(self, comment: str) -> None:
        """The claim is over."""
        self._accounts.pop(comment, None)

    @asynccontextmanager
    async def taken(self, comment: str) -> AsyncIterator[None]:
        """Wait for a place for one command on the claim with this comment, and hold it."""
        account = self._accounts.get(comment)
        if account is None:
            async with self._all:
                yield
            return
        async with self._by_account[account], self._all:
            yield
