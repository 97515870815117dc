"""Waits for conditions. Timeouts are generous because machines are shared: a wait ends when its condition holds."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable

WITHIN_S = 180.0
PAUSE_S = 0.05


async def until(condition: Callable[[], object], within_s: float = WITHIN_S, pause_s: float = PAUSE_S) -> None:
    """Wait until a condition is true. It may be a coroutine function, and may itself cause progress."""
    async with asyncio.timeout(within_s):
        while not await _value_of(condition):
            await asyncio.sleep(pause_s)


async def _value_of(condition: Callable[[], object]) -> object:
    value = condition()
    return await value if inspect.isawaitable(value) else value


def wait_until(condition: Callable[[], object], report: Callable[[], object] = str, within_s: float = WITHIN_S) -> None:
    """Wait for a condition outside of an event loop. `report` says what is still wrong after the timeout."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s:.0f} s: {report()}"
        time.sleep(PAUSE_S)
