"""Limits on commands that run at once, so that the commands for one customer cannot delay those for others."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

PER_ACCOUNT = 3
RESERVED_CHANNELS = 3  # of the login, for polling and other queries


class ConcurrencyLimits:
    """At most `per_account` commands at once per Unix account, and RESERVED_CHANNELS fewer than there are channels.

    A submission knows its account by name, a snapshot by number. Both mean the same account.
    """

    def __init__(self, channels: int, per_account: int = PER_ACCOUNT) -> None:
        self._all = asyncio.Semaphore(max(1, channels - RESERVED_CHANNELS))
        self._by_account: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(per_account))
        self._accounts: dict[str, str] = {}

    def learn(self, accounts: Mapping[str, str]) -> None:
        """Note the accounts of claims, by the claim's comment."""
        for comment, account in accounts.items():
            known = self._accounts.setdefault(comment, account)
            if known != account:
                self._by_account[account] = self._by_account[known]

    def forget(self, comment: str) -> None:
        """The claim is over."""
        self._accounts.pop(comment, None)

    @asynccontextmanager
    async def slot(self, comment: str) -> AsyncIterator[None]:
        """Wait until a command on the claim with this comment may run. It runs while the context lasts."""
        account = self._accounts.get(comment)
        if account is None:
            async with self._all:
                yield
            return
        async with self._by_account[account], self._all:
            yield
