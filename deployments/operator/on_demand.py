"""Runs that are started when something happened, beside their schedules."""

from __future__ import annotations

import asyncio
from typing import Any

from runtime.required_runs import see_through

AGAIN_S = 5.0
LONGEST_PAUSE_S = 60.0


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
            if await see_through(self._deployment, self._parameters):
                failures = 0
                continue
            await asyncio.sleep(min(LONGEST_PAUSE_S, AGAIN_S * 2 ** min(failures, 10)))
            failures += 1
            self._wanted.set()
