"""Errands: what customers want of their jobs is done at once: carriers are woken, and flows empty the queues on chain.

The queues hold cancel requests and top-ups, of which no event tells. Carriers are woken without Prefect; the flows
come as soon as it lets them.
"""

from __future__ import annotations

import asyncio
import logging

from deepgrid.chain.figures import Queues
from deepgrid.errors import GridError
from deepgrid.provider import steering
from deepgrid.provider.session import ProviderSession
from runtime.required_runs import see_through

LOOK_S = 2.0
AGAIN_S = 15.0  # after a run that did not complete

logger = logging.getLogger(__name__)


class QueueWatcher:
    """Looks after the queues of one provider, for ever; at most one run of each flow at a time."""

    def __init__(self, session: ProviderSession) -> None:
        self._session = session
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._outage = ""
        self._told = (0, 0)  # entries of the queues of which carriers know

    async def look_after(self) -> None:
        """Look every 2 s, with one request; a node that is away is waited for."""
        async with asyncio.TaskGroup() as group:
            while True:
                if (queues := await self._look()) is not None:
                    await self._wake(queues)
                    for flow, waiting in (("cancel_jobs", queues.cancelling), ("top_up_jobs", queues.topped_up)):
                        if waiting and (flow not in self._under_way or self._under_way[flow].done()):
                            self._under_way[flow] = group.create_task(self._run(flow))
                await asyncio.sleep(LOOK_S)

    async def _look(self) -> Queues | None:
        """What waits; None, and one warning an outage, when that cannot be told."""
        try:
            queues = await self._session.chain.queues(self._session.address)
        except GridError as error:
            if error.message != self._outage:
                logger.warning("the queues cannot be read, trying again: %s", error)
            self._outage = error.message
            return None
        self._outage = ""
        return queues

    async def _wake(self, queues: Queues) -> None:
        """Wake whoever carries a job that is to be cancelled or was topped up, once for each entry that is new."""
        if (queues.cancelling, queues.topped_up) == self._told:
            return
        try:
            wanted = await steering.to_be_cancelled(self._session) if queues.cancelling else []
            wanted += await steering.topped_up(self._session) if queues.topped_up else []
        except GridError as error:
            logger.warning("carriers are not woken yet: %s", error)
            return
        for job in wanted:
            steering.wake_carrier(self._session, job)
        self._told = (queues.cancelling, queues.topped_up)

    async def _run(self, flow: str) -> None:
        cluster = self._session.settings.cluster
        if not await see_through(f"{flow}/{cluster}", {"cluster": cluster}):
            await asyncio.sleep(AGAIN_S)
