"""Watches the providers of the grid, and reports changes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from deepgrid.errors import GridError
from deepgrid.lifecycle.job import Provider
from deepgrid.operator.session import OperatorSession

POLL_S = 5.0

logger = logging.getLogger(__name__)


class Market:
    """Calls `changed` whenever a provider changes, and `proposed` when a provider in force proposes a change.

    It does not notice a proposal that replaces a waiting one. The schedule of the flow `approve_labels` handles that.
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
        self._known: list[Provider] = []
        self._waiting: set[str] = set()

    async def watch(self) -> None:
        """Poll forever. An outage of the node only delays."""
        away = False
        while True:
            try:
                self._compare(await self._session.chain.providers())
                away = False
            except GridError as error:
                if not away:
                    logger.warning("cannot read the providers, trying again: %s", error.message)
                away = True
            await asyncio.sleep(self._poll_s)

    def _compare(self, providers: list[Provider]) -> None:
        if providers != self._known:
            self._changed()
        waiting = {one.address for one in providers if one.in_force and one.waiting_for_approval}
        if waiting - self._waiting:
            self._proposed()
        self._known, self._waiting = providers, waiting
