"""Whoever waits for news of a job is woken by news of that job, and only then or at the time limit."""

from __future__ import annotations

import asyncio

from deepgrid.provider.wakeups import Wakeups


async def test_news_wakes_those_who_wait_for_that_job() -> None:
    wakeups = Wakeups()
    waiting = [asyncio.create_task(wakeups.wait(job_id, timeout_s=60)) for job_id in (1, 1, 2)]
    await asyncio.sleep(0)
    wakeups.wake([1, 3])
    await asyncio.wait_for(asyncio.gather(*waiting[:2]), 30)
    assert not waiting[2].done()
    wakeups.wake([2])
    await asyncio.wait_for(waiting[2], 30)


async def test_no_news_is_waited_for_no_longer_than_said() -> None:
    await asyncio.wait_for(Wakeups().wait(1, timeout_s=0.01), 30)
