"""Retries of reads: exponential backoff with jitter."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from deepgrid.errors import GridError

T = TypeVar("T")

FIRST_PAUSE_S = 0.25


def pauses_s(longest_s: float) -> Callable[[int], float]:
    """The pause before retry number 0, 1, ...: it doubles from 0.25 s up to `longest_s`, with jitter."""
    return lambda failures: min(FIRST_PAUSE_S * 2 ** min(failures, 10), longest_s) * random.uniform(0.5, 1.0)


async def patiently(
    read: Callable[[], Awaitable[T]],
    patience_s: float | None,
    longest_pause_s: float,
    on_failure: Callable[[GridError], None] = lambda _: None,
) -> T:
    """The result of `read`, which is retried while it fails with a transient error.

    Args:
        read: Starts the read. It must be safe to repeat.
        patience_s: Seconds for which it is retried. None means without a limit.
        longest_pause_s: Longest pause between two retries.
        on_failure: Gets the first error of an outage.

    Raises:
        GridError: A permanent error at once, or the last transient one when the patience is over.
    """
    deadline = None if patience_s is None else time.monotonic() + patience_s
    pause_s = pauses_s(longest_pause_s)
    failures = 0
    while True:
        try:
            return await read()
        except GridError as error:
            wait_s = pause_s(failures)
            if not error.transient or (deadline is not None and time.monotonic() + wait_s > deadline):
                raise
            if failures == 0:
                on_failure(error)
        failures += 1
        await asyncio.sleep(wait_s)
