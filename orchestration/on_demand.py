"""Starts runs of quick flows when there is work for them. Their schedules are only a safety net.

A run that finds nothing to do costs rows in Prefect's database and hides what happened.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from orchestration.outages import asking, warn
from orchestration.runs.flow_runs import is_paused, run_to_completion

RETRY_S = 5.0  # the first pause after a failed run; each further pause is twice as long
LONGEST_PAUSE_S = 60.0

logger = logging.getLogger(__name__)

HasWork = Callable[[dict[str, Any]], Awaitable[bool]]


class OnDemand:
    """Starts a run of the deployment (`flow/name`) whenever one is requested, one at a time.

    Requests during a run lead to one more run. A run that does not complete, or that Prefect skips because of a
    concurrency limit, is followed by a new one with exponential back-off.
    """

    def __init__(self, deployment: str, parameters: dict[str, Any], retry_s: float = RETRY_S) -> None:
        self._retry_s = retry_s
        self._deployment = deployment
        self._parameters = parameters
        self._requested = asyncio.Event()

    def request(self) -> None:
        """Request a run."""
        self._requested.set()

    async def serve(self) -> None:
        """Start the requested runs, forever."""
        failures = 0
        while True:
            await self._requested.wait()
            self._requested.clear()
            if await run_to_completion(self._deployment, self._parameters):
                failures = 0
                continue
            await asyncio.sleep(min(LONGEST_PAUSE_S, self._retry_s * 2 ** min(failures, 10)))
            failures += 1
            self._requested.set()


async def run_when_needed(deployment: str, has_work: HasWork, every_s: float) -> None:
    """Look for work every `every_s` seconds, forever, and run the deployment (`flow/name`) when there is some.

    `has_work` gets the deployment's parameters. It is not asked while the deployment is paused. An outage of Prefect
    or of what it asks only delays, and is logged once.
    """
    logged = ""
    while True:
        await asyncio.sleep(every_s)
        try:
            async with asking() as client:
                found = await client.read_deployment_by_name(deployment)
            if not is_paused(found) and await has_work(found.parameters):
                await run_to_completion(deployment, {})
            logged = ""
        except Exception as error:  # Prefect's client raises many types while its server is down
            if repr(error) != logged:
                warn(logger, f"cannot check whether {deployment} is needed, trying again", error)
            logged = repr(error)
