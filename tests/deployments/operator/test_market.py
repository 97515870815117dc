"""The market watcher: each change of a provider is reported once."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from deepgrid.lifecycle.job import Label
from deployments.operator.market import Market
from tests.chain.grid import HARDWARE, LABELS, PRICES, approve_waiting
from tests.operator.conftest import Office

WITHIN_S = 60
POLL_S = 0.01


async def test_a_change_of_the_market_is_noticed_once(office: Office) -> None:
    seen: Counter[str] = Counter()
    looks = 0
    providers = office.session.chain.providers

    async def counted() -> Any:
        nonlocal looks
        looks += 1
        return await providers()

    office.session.chain.providers = counted  # type: ignore[method-assign]
    market = Market(office.session, lambda: seen.update(["changed"]), lambda: seen.update(["proposed"]), POLL_S)
    watching = asyncio.create_task(market.watch())

    async def some_looks() -> None:
        enough = looks + 3
        async with asyncio.timeout(WITHIN_S):
            while looks < enough:
                await asyncio.sleep(0.01)

    try:
        await some_looks()
        assert seen == {"changed": 1}  # the first look
        provider = office.people.provider
        await provider.register(HARDWARE, PRICES, (*LABELS, Label("compute.gflops", "1.00")))
        await some_looks()
        assert seen == {"changed": 2, "proposed": 1}
        await approve_waiting(office.people.operator, provider.address)
        await some_looks()
        assert seen == {"changed": 3, "proposed": 1}
        await office.people.customer.register(HARDWARE, PRICES, LABELS)
        await some_looks()
        assert seen == {"changed": 4, "proposed": 1}  # a newcomer needs a person
        office.grid.anvil.stop()
        await some_looks()
        assert not watching.done()
    finally:
        watching.cancel()
