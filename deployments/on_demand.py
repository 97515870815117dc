"""Runs that are started when something happened, beside their schedules."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from deployments.starting import start_at_last
from tasks.outages import warn
from tasks.runs import run_ended

AGAIN_S = 5.0
LONGEST_PAUSE_S = 60.0

logger = logging.getLogger(__name__)


class OnDemand:
    """Starts a run of the deployment (`flow/name`) whenever one is wanted; one at a time.

    What is wanted while a run is under way leads to one more. A run that does not complete, or was
    skipped because it met another, is followed by a new one, after longer and longer pauses.
    """

    def __init__(self, deployment: str, parameters: dict[str, Any]) -> None:
        self._deployment = deployment
        self._parameters = parameters
        self._wanted = asyncio.Event()

    def want(self) -> None:
        """Ask for a run."""
        self._wanted.set()

    async def serve(self) -> None:
        """Start what is wanted, for ever."""
        failures = 0
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            if await self._run_once():
                failures = 0
                continue
            await asyncio.sleep(min(LONGEST_PAUSE_S, AGAIN_S * 2 ** min(failures, 10)))
            failures += 1
            self._wanted.set()

    async def _run_once(self) -> bool:
        try:
            return await run_ended(await start_at_last(self._deployment, self._parameters))
        except Exception as error:  # whatever Prefect's client raises
            warn(logger, f"{self._deployment} was not seen to its end, trying again", error)
            return False
