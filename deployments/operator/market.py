"""Watches the providers of the grid, once for all who want to know of a change."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from deepgrid.errors import GridError
from deepgrid.lifecycle.job import Provider
from deepgrid.operator.session import OperatorSession

LOOK_S = 5.0

logger = logging.getLogger(__name__)


class Market:
    """Calls `changed` whenever the providers are not as before, `proposed` when one in force proposes something.

    A proposal that replaces one that waits already looks the same from here; the schedule of the
    approving flow brings it.
    """

    def __init__(self, session: OperatorSession, changed: Callable[[], None], proposed: Callable[[], None]) -> None:
        self._session = session
        self._changed = changed
        self._proposed = proposed
        self._known: list[Provider] = []
        self._waiting: set[str] = set()

    async def watch(self) -> None:
        """Look every few seconds, for ever; a node that is away is waited for."""
        away = False
        while True:
            try:
                self._compare(await self._session.chain.providers())
                away = False
            except GridError as error:
                if not away:
                    logger.warning("cannot read the providers, trying again: %s", error.message)
                away = True
            await asyncio.sleep(LOOK_S)

    def _compare(self, providers: list[Provider]) -> None:
        if providers != self._known:
            self._changed()
        waiting = {one.address for one in providers if one.in_force and one.waiting_for_approval}
        if waiting - self._waiting:
            self._proposed()
        self._known, self._waiting = providers, waiting
