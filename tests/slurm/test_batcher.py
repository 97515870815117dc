"""Concurrent requests are executed in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from deepgrid.slurm.submit.throttle import Batcher


async def test_concurrent_requests_are_done_in_one_call() -> None:
    batches: list[list[int]] = []
    release = asyncio.Event()

    async def do(batch: Sequence[int]) -> None:
        batches.append(list(batch))
        await release.wait()

    batcher = Batcher(do, 0.0, batch_size=2)
    asked = [asyncio.create_task(batcher.do(number)) for number in range(3)]
    while not batches:
        await asyncio.sleep(0)
    asked.append(asyncio.create_task(batcher.do(3)))
    release.set()
    await asyncio.gather(*asked)
    assert batches == [[0, 1], [2, 3]]
    await batcher.do(4)
    assert batches[2:] == [[4]]


async def test_an_error_reaches_all_callers_of_a_batch_and_later_batches_run() -> None:
    async def do(batch: Sequence[int]) -> None:
        if 1 in batch:
            raise ValueError("no")

    batcher = Batcher(do, 0.0, batch_size=2)
    ends = await asyncio.gather(*map(batcher.do, range(4)), return_exceptions=True)
    assert [isinstance(end, ValueError) for end in ends] == [True, True, False, False]


async def test_a_cancelled_caller_does_not_cancel_the_others() -> None:
    done: list[int] = []

    async def do(batch: Sequence[int]) -> None:
        done.extend(batch)

    batcher = Batcher(do, 0.0, batch_size=9)
    impatient, patient = (asyncio.create_task(batcher.do(number)) for number in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    await patient
    assert done == [0, 1]
    with pytest.raises(asyncio.CancelledError):
        await impatient
