"""The operator's process: follows the chain and carries the operator's flow runs in process."""

from __future__ import annotations

import asyncio
import logging
from typing import cast

from blocks import Operator
from deepgrid.errors import GridError
from deepgrid.lifecycle.job import Provider
from deepgrid.roles.operator import OperatorSession, follow_jobs, operator_session
from deployments.starting import start_at_last
from deployments.worker import InProcessWorker
from tasks import sessions
from tasks.runs import calling_to_runs, run_ended

LOOK_AGAIN_S = 15.0
RETRY_AFTER_S = 5.0
ANYWAY_AFTER_S = 600.0

logger = logging.getLogger(__name__)


async def serve_operator(name: str) -> None:
    """Serve the operator block `name` until cancelled."""
    settings = cast(Operator, await Operator.aload(name)).settings()
    pool = f"operator-{name}"
    async with operator_session(settings) as session, sessions.serving_operator(name, session):
        worker = InProcessWorker(pool, name=f"operator-{name}")
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.start(printer=logger.info))
            with calling_to_runs(pool, worker):
                await MetaScheduling(name, session).follow(group)


class MetaScheduling:
    """Starts `meta_schedule` when a job is pending and something changed since the last time.

    A job that no cluster can take costs nothing while nothing changes.
    """

    def __init__(self, name: str, session: OperatorSession) -> None:
        self._name = name
        self._session = session
        self._wanted = asyncio.Event()
        self._market: list[Provider] = []

    async def follow(self, group: asyncio.TaskGroup) -> None:
        """Follow the chain for ever."""
        group.create_task(self._schedule())
        async for _ in follow_jobs(self._session):
            self._wanted.set()

    async def _schedule(self) -> None:
        clock = asyncio.get_running_loop().time
        last = clock()
        while True:
            try:
                async with asyncio.timeout(LOOK_AGAIN_S):
                    await self._wanted.wait()
            except TimeoutError:
                if not await self._market_changed() and clock() - last < ANYWAY_AFTER_S:
                    continue
            self._wanted.clear()
            if not self._session.index.pending():
                continue
            last = clock()
            if not await self._run_once():
                await asyncio.sleep(RETRY_AFTER_S)
                self._wanted.set()

    async def _run_once(self) -> bool:
        """One run at a time: an overlapping one would assign the same jobs again, in vain."""
        return await run_ended(await start_at_last(f"meta_schedule/{self._name}", {"operator": self._name}))

    async def _market_changed(self) -> bool:
        if not self._session.index.pending():
            return False
        try:
            market = await self._session.chain.providers()
        except GridError as error:
            logger.warning("cannot read the providers: %s", error.message)
            return False
        changed, self._market = market != self._market, market
        return changed
