"""Measures single steps of the event loop in processor time, so other processes of the machine do not count."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

LONGEST_STEP_S = 0.1


@contextmanager
def watched_loop() -> Iterator[list[float]]:
    """Yield the seconds of each step, which grow while the context lasts."""
    steps = [0.0]
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        steps.append(time.thread_time() - began)

    with without_old_garbage(), patch.object(asyncio.Handle, "_run", timed):
        yield steps


@contextmanager
def without_old_garbage() -> Iterator[None]:
    """Collect garbage before the context and not during it, so that no step collects garbage of earlier tests."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
