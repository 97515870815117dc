"""Starts runs on events, in addition to their schedules."""

from __future__ import annotations

import asyncio
from typing import Any

from orchestration.runs.required_runs import run_to_completion

RETRY_S = 5.0  # the first pause after a failed run; each further pause is twice as long
LONGEST_PAUSE_S = 60.0


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
