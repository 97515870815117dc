"""A customer who submits small jobs at a steady rate, and retries while a part of the grid is down."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from deepgrid.client.order import Order
from deepgrid.client.session import CustomerSession
from deepgrid.errors import GridError

PATIENCE_S = 300.0
RETRY_S = 1.0

T = TypeVar("T")


class Stream:
    """Submits `order` again and again. `ids` are the jobs that exist so far."""

    def __init__(self, session: CustomerSession, order: Order) -> None:
        self._session = session
        self._order = order
        self.ids: list[int] = []

    async def run(self, count: int, per_s: float) -> None:
        """Begin `count` submissions at this rate, for any duration of each. Returns when the last job exists."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                await asyncio.sleep(began + number / per_s - time.monotonic())
                group.create_task(self._submit())

    async def _submit(self) -> None:
        place = await _patiently(lambda: self._session.store(self._order))
        self.ids.append(await _patiently(lambda: self._session.request(self._order, place)))


async def _patiently(step: Callable[[], Awaitable[T]]) -> T:
    """Repeat a step after transient errors."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return await step()
        except GridError as error:
            if not error.transient or time.monotonic() > deadline:
                raise
        await asyncio.sleep(RETRY_S)
