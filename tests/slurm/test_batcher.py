"""What is asked for side by side is done together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from deepgrid.slurm.submit.batcher import Batcher


async def test_what_is_asked_for_side_by_side_is_done_in_one_call() -> None:
    lots: list[list[int]] = []
    release = asyncio.Event()

    async def do(lot: Sequence[int]) -> None:
        lots.append(list(lot))
        await release.wait()

    together = Batcher(do, 0.0, at_most=2)
    asked = [asyncio.create_task(together.do(number)) for number in range(3)]
    while not lots:
        await asyncio.sleep(0)
    asked.append(asyncio.create_task(together.do(3)))
    release.set()
    await asyncio.gather(*asked)
    assert lots == [[0, 1], [2, 3]]
    await together.do(4)
    assert lots[2:] == [[4]]


async def test_an_error_is_everybodys_and_ends_nothing() -> None:
    async def do(lot: Sequence[int]) -> None:
        if 1 in lot:
            raise ValueError("no")

    together = Batcher(do, 0.0, at_most=2)
    ends = await asyncio.gather(*map(together.do, range(4)), return_exceptions=True)
    assert [isinstance(end, ValueError) for end in ends] == [True, True, False, False]


async def test_who_goes_away_takes_nobody_along() -> None:
    done: list[int] = []

    async def do(lot: Sequence[int]) -> None:
        done.extend(lot)

    together = Batcher(do, 0.0, at_most=9)
    impatient, patient = (asyncio.create_task(together.do(number)) for number in range(2))
    await asyncio.sleep(0)
    impatient.cancel()
    await patient
    assert done == [0, 1]
    with pytest.raises(asyncio.CancelledError):
        await impatient
