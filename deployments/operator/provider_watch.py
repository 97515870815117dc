"""Watches the providers of the grid, keeps them for the rounds, and reports changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from deepgrid.chain.chain_findings import OPERATOR_GAS, judge_gas
from deepgrid.chain.provider_log import providers_changed
from deepgrid.errors import GridError
from deepgrid.operator.session import OperatorSession
from orchestration.grid_events import LOW_ON_GAS, Conditions

POLL_S = 5.0
GAS_EVERY_S = 60.0
READ_AGAIN_S = 300.0  # the counters of providers change without an event

logger = logging.getLogger(__name__)


class ProviderWatch:
    """Calls `changed` whenever a provider changes, and `proposed` when a provider in force proposes a change.

    One small request per poll finds changes; all providers are read only after one. It does not notice a proposal that
    replaces a waiting one. The schedule of the flow `approve_labels` handles that.
    """

    def __init__(
        self,
        session: OperatorSession,
        changed: Callable[[], None],
        proposed: Callable[[], None],
        poll_s: float = POLL_S,
    ) -> None:
        self._session = session
        self._poll_s = poll_s
        self._changed = changed
        self._proposed = proposed
        self._waiting: set[str] = set()
        self._block = -1  # up to which changes are known
        self._block_hash = ""
        self._read_at = 0.0
        self._gas_at = -GAS_EVERY_S
        self._conditions = Conditions("operator", session.sender.address)

    async def watch(self) -> None:
        """Poll forever. An outage of the node only delays."""
        away = False
        try:
            while True:
                try:
                    await self._look()
                    away = False
                except GridError as error:
                    if not away:
                        logger.warning("cannot read the providers, trying again: %s", error.message)
                    away = True
                await asyncio.sleep(self._poll_s)
        finally:
            self._session.watched = None

    async def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._gas_at >= GAS_EVERY_S:
            session, address = self._session, self._session.sender.address
            money, price = await session.chain.gas_money(address), await session.chain.gas_price()
            session.metrics.set_gas_balance(money)
            self._conditions.tell(LOW_ON_GAS, judge_gas(OPERATOR_GAS, address, money, price).complaint)
            self._gas_at = now
        head = await self._session.chain.head()
        if head.hash == self._block_hash:
            return
        is_old = self._session.watched is None or head.number <= self._block or now - self._read_at > READ_AGAIN_S
        if is_old or await providers_changed(self._session.chain, self._block + 1, head.number):
            await self._read()
            self._read_at = now
        self._block, self._block_hash = head.number, head.hash

    async def _read(self) -> None:
        before, found = self._session.watched or [], await self._session.chain.providers_and_records()
        self._session.watched = found
        providers = [one for one, _ in found]
        self._session.metrics.saw_providers(providers)
        if providers != [one for one, _ in before]:
            self._changed()
        waiting = {one.address for one in providers if one.in_force and one.waiting_for_approval}
        if waiting - self._waiting:
            self._proposed()
        self._waiting = waiting
