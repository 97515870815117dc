"""A coroutine that waits for news of a job is woken by news of that job, or by the timeout."""

from __future__ import annotations

import asyncio

from deepgrid.provider.shared.wakeups import Wakeups


async def test_news_of_a_job_wakes_its_waiters() -> None:
    wakeups = Wakeups()
    waiting = [asyncio.create_task(wakeups.wait(job_id, timeout_s=60)) for job_id in (1, 1, 2)]
    await asyncio.sleep(0)
    wakeups.wake([1, 3])
    await asyncio.wait_for(asyncio.gather(*waiting[:2]), 30)
    assert not waiting[2].done()
    wakeups.wake([2])
    await asyncio.wait_for(waiting[2], 30)


async def test_a_wait_ends_at_its_timeout() -> None:
    await asyncio.wait_for(Wakeups().wait(1, timeout_s=0.01), 30)
