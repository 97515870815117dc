"""A carrier drives one claim at the provider: it observes, and does what `decide` says, step by step."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from deepgrid.errors import GridError
from deepgrid.lifecycle.actions import (
    Action,
    CancelAtSlurm,
    ExtendLimit,
    Refuse,
    ReportRunning,
    Settle,
    Submit,
    Wait,
)
from deepgrid.lifecycle.decide import Observation
from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.claims.observer import ClaimObserver
from deepgrid.provider.claims.steps import PlainSteps, Steps
from deepgrid.provider.session import ProviderSession

logger = logging.getLogger(__name__)


class Carrier:
    """Drives one claim. Open one with `carry`."""

    def __init__(self, session: ProviderSession, key: JobKey) -> None:
        self.session = session
        self.key = key
        self._observer = ClaimObserver(session, key)
        self.steps = PlainSteps(self._observer)

    async def observe(self) -> Observation:
        """Read the truth about the claim. While the chain's node is down, retry until it answers."""
        return await self._observer.observe()

    async def act(self, action: Action, steps: Steps | None = None) -> None:
        """Do one action through `steps`, by default the carrier's own plain steps."""
        steps = steps or self.steps
        match action:
            case Submit():
                script = await steps.fetch_script()
                if script is not None:
                    await steps.submit(script)
            case Wait(awaited):
                await steps.wait(awaited)
            case ReportRunning():
                await steps.report_running(action)
            case ExtendLimit():
                await steps.extend_limit(action)
            case Settle():
                await steps.settle(action)
            case Refuse(reason):
                await steps.refuse(reason)
            case CancelAtSlurm():
                await steps.cancel_at_slurm()

    async def finish(self) -> None:
        """Remove the cluster's completion record, and wait a while for the rest of the log. The job is settled already.

        A log that takes longer is delivered without this carrier.
        """
        try:
            await self.session.cluster.acknowledge(self.key)
        except GridError as error:
            logger.warning("job %d: its completion record stays: %s", self.key.job_id, error.message)
        await self.session.logs.finish(self.key)


@asynccontextmanager
async def carry(
    session: ProviderSession, key: JobKey, *, stand_in: asyncio.Task[None] | None = None
) -> AsyncIterator[Carrier]:
    """The only carrier of the claim in this process while the context lasts. See `ProviderSession.driving`."""
    async with session.driving(key, stand_in=stand_in):
        yield Carrier(session, key)
