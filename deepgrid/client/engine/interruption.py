"""What an interrupted call says about the work that goes on without it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def noted(words: str) -> Iterator[None]:
    """Add a note to a cancellation, which a traceback shows as its last line. `Grid` moves it to KeyboardInterrupt."""
    try:
        yield
    except asyncio.CancelledError as error:
        error.add_note(words)
        raise


def continues(job_id: int) -> str:
    """How to go on with a job after an interrupted wait."""
    again = f"wait for it again with `grid.job({job_id}).wait()`, or look at `dps job get {job_id}`"
    return f"Job {job_id} continues; {again}."
