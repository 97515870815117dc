"""Polls the on-chain queues of cancel requests and top-ups, wakes carriers, and starts flows that empty the queues.

No chain event reports these requests. Carriers are woken without Prefect. The flows start once Prefect answers.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from deepgrid.chain.node.values import Queues
from deepgrid.condition_log import ConditionLog
from deepgrid.errors import GridError
from deepgrid.provider.claims import customer_requests
from deepgrid.provider.session import ProviderSession
from orchestration.runs.flow_runs import run_to_completion

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class QueueWatcherSettings:
    """Intervals of the queue watcher."""

    poll_s: float = 2.0
    idle_poll_s: float = 30.0  # while no claim is carried, so that nothing can come in
    run_retry_s: float = 15.0  # after a run that did not complete


class QueueWatcher:
    """Watches the queues of one provider. At most one run of each flow is under way."""

    def __init__(self, session: ProviderSession, settings: QueueWatcherSettings = QueueWatcherSettings()) -> None:
        self._session = session
        self._settings = settings
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._unread = ConditionLog(logger, "cannot read the on-chain queues")
        self._unwoken = ConditionLog(logger, "cannot wake carriers yet")
        self._announced = (0, 0)  # lengths of the queues when carriers were last woken

    async def watch(self) -> None:
        """Poll forever, with one request each time. An outage of the node only delays."""
        async with asyncio.TaskGroup() as group:
            while True:
                if (queues := await self._read()) is not None:
                    await self._wake(queues)
                    for flow, waiting in (("cancel_jobs", queues.cancelling), ("top_up_jobs", queues.topped_up)):
                        if waiting and (flow not in self._under_way or self._under_way[flow].done()):
                            self._under_way[flow] = group.create_task(self._run(flow))
                await self._pause(queues)

    async def _pause(self, queues: Queues | None) -> None:
        """Wait for the next poll: until a claim is carried, if there is none and the queues are empty."""
        waited_s = 0.0
        while True:
            await asyncio.sleep(self._settings.poll_s)
            waited_s += self._settings.poll_s
            is_idle = self._session.is_idle and queues == Queues(0, 0, 0)
            if not is_idle or waited_s >= self._settings.idle_poll_s:
                return

    async def _read(self) -> Queues | None:
        """Return the lengths of the queues; None when the node does not answer."""
        try:
            queues = await self._session.chain.queues(self._session.address)
        except GridError as error:
            self._unread.note(error)
            return None
        self._unread.end()
        return queues

    async def _wake(self, queues: Queues) -> None:
        """Wake the carriers of jobs with a cancel request or a top-up, once per new entry."""
        if (queues.cancelling, queues.topped_up) == self._announced:
            return
        try:
            wanted = await customer_requests.read_cancel_requests(self._session) if queues.cancelling else []
            wanted += await customer_requests.read_top_ups(self._session) if queues.topped_up else []
        except GridError as error:
            self._unwoken.note(error)
            return
        self._unwoken.end()
        for job in wanted:
            customer_requests.wake_carrier(self._session, job)
        self._announced = (queues.cancelling, queues.topped_up)

    async def _run(self, flow: str) -> None:
        cluster = self._session.settings.cluster
        if not await run_to_completion(f"{flow}/{cluster}", {"cluster": cluster}):
            await asyncio.sleep(self._settings.run_retry_s)
