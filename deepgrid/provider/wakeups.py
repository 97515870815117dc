"""Wake-ups by job: events say "look", never what is true."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable


class Wakeups:
    """Lets many coroutines wait for news of their own job."""

    def __init__(self) -> None:
        self._waiting: dict[int, set[asyncio.Event]] = defaultdict(set)

    def wake(self, job_ids: Iterable[int]) -> None:
        """Wake whoever waits for one of these jobs."""
        for job_id in job_ids:
            for event in self._waiting.get(job_id, ()):
                event.set()

    async def wait(self, job_id: int, timeout_s: float) -> None:
        """Return at the next news of the job, or after `timeout_s` at the latest."""
        event = asyncio.Event()
        self._waiting[job_id].add(event)
        try:
            async with asyncio.timeout(timeout_s):
                await event.wait()
        except TimeoutError:
            pass
        finally:
            self._waiting[job_id].discard(event)
            if not self._waiting[job_id]:
                del self._waiting[job_id]
