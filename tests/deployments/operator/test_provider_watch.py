"""The watcher of providers: each change of a provider is reported once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from deepgrid.lifecycle.job import Label
from deployments.operator.process import ProviderWatch
from tests.chain.grid import HARDWARE, LABELS, PRICES, approve_waiting
from tests.operator.office import Office

WITHIN_S = 60
POLL_S = 0.01


class Counted:
    """Counts the reads of the head and of all providers."""

    def __init__(self, office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks = self.reads = 0
        self._head, self.providers = office.session.chain.head, office.session.chain.providers_and_records
        monkeypatch.setattr(office.session.chain, "head", self._look)
        monkeypatch.setattr(office.session.chain, "providers_and_records", self._read)

    async def _look(self) -> Any:
        self.looks += 1
        return await self._head()

    async def _read(self) -> Any:
        self.reads += 1
        return await self.providers()

    async def some_looks(self) -> None:
        enough = self.looks + 3
        async with asyncio.timeout(WITHIN_S):
            while self.looks < enough:
                await asyncio.sleep(0.01)


@pytest.fixture
def counted(office: Office, monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(office, monkeypatch)


@asynccontextmanager
async def watching(office: Office) -> AsyncIterator[Counter[str]]:
    """Yield what a running watcher reported."""
    seen: Counter[str] = Counter()
    market = ProviderWatch(office.session, lambda: seen.update(["changed"]), lambda: seen.update(["proposed"]), POLL_S)
    task = asyncio.create_task(market.watch())
    try:
        yield seen
        assert not task.done()
    finally:
        task.cancel()


async def test_a_change_of_the_market_is_noticed_once(office: Office, counted: Counted) -> None:
    async with watching(office) as seen:
        await counted.some_looks()
        assert seen == {"changed": 1}  # the first read
        provider = office.people.provider
        await provider.register(HARDWARE, PRICES, (*LABELS, Label("compute.gflops", "1.00")))
        await counted.some_looks()
        assert seen == {"changed": 2, "proposed": 1}
        await approve_waiting(office.people.operator, provider.address)
        await counted.some_looks()
        assert seen == {"changed": 3, "proposed": 1}
        await office.people.customer.register(HARDWARE, PRICES, LABELS)
        await counted.some_looks()
        assert seen == {"changed": 4, "proposed": 1}  # a new provider needs a person
        office.grid.anvil.stop()
        await counted.some_looks()


async def test_a_thousand_providers_are_not_read_at_every_look(office: Office, counted: Counted) -> None:
    async with watching(office) as seen:
        for _ in range(3):
            await office.people.request()  # a block without a change of a provider
            await counted.some_looks()
        assert (seen, counted.reads) == ({"changed": 1}, 1)
        assert await office.session.providers() == await counted.providers()
