"""Wake-ups per job. An event is a hint to read the truth; it carries no truth itself."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable


class Wakeups:
    """Lets coroutines wait for news of one job each."""

    def __init__(self) -> None:
        self._waiting: dict[int, set[asyncio.Event]] = defaultdict(set)

    def wake(self, job_ids: Iterable[int]) -> None:
        """Wake the coroutines that wait for one of these jobs."""
        for job_id in job_ids:
            for event in self._waiting.get(job_id, ()):
                event.set()

    async def wait(self, job_id: int, timeout_s: float) -> None:
        """Return at the next news of the job, or after `timeout_s`."""
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
