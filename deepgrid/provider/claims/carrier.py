"""A carrier drives one claim at the provider: it observes, and does what `decide` says, step by step."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, ParamSpec, Protocol, TypeVar

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
from deepgrid.provider.claims.steps import ClaimSteps
from deepgrid.provider.session import ProviderSession

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


class RunStep(Protocol):
    """Runs a step with these arguments. `name` says in words what the step does, for people to read."""

    async def __call__(
        self, name: str, step: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...


async def call_step(_name: str, step: Callable[P, Coroutine[Any, Any, R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Call the step, and nothing else."""
    return await step(*args, **kwargs)


class Carrier:
    """Drives one claim. Open one with `carry`."""

    def __init__(self, session: ProviderSession, key: JobKey) -> None:
        self.session = session
        self.key = key
        self._observer = ClaimObserver(session, key)
        self.steps = ClaimSteps(self._observer)

    async def observe(self) -> Observation:
        """Read the truth about the claim. While the chain's node is down, retry until it answers."""
        return await self._observer.observe()

    async def act(self, action: Action, run: RunStep = call_step) -> None:
        """Do one action. `run` runs each step of it, as a Prefect task for example."""
        steps, job, at = self.steps, f"job {self.key.job_id}", f"on {self.session.settings.cluster}"
        match action:
            case Submit():
                if (script := await run(f"fetch script of {job} {at}", steps.fetch_script)) is not None:
                    await run(f"submit {job} to Slurm {at}", steps.submit, script)
            case Wait(awaited):
                await run(f"await {awaited.value} {job} {at}", steps.wait, awaited)
            case ReportRunning():
                await run(f"report {job} running {at}", steps.report_running, action)
            case ExtendLimit(minutes):
                await run(f"extend {job} to {minutes} minutes {at}", steps.extend_limit, action)
            case Settle(status):
                await run(f"settle {job} as {status.words} {at}", steps.settle, action)
            case Refuse(reason):
                await run(f"refuse {job} {at}", steps.refuse, reason)
            case CancelAtSlurm():
                await run(f"cancel {job} at Slurm {at}", steps.cancel_at_slurm)

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
