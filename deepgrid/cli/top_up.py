"""Converts a time into the credits that buy it."""

from __future__ import annotations

import math

from deepgrid.client.amounts import seconds_of
from deepgrid.client.job import AsyncJob
from deepgrid.errors import InputError

MOST_MINUTES = 60 * 24 * 366 * 10


def minutes_in(text: str) -> int:
    """Whole minutes of a duration, rounded up. A number without a unit is minutes. Raises InputError."""
    minutes = (
        int(text) if text.isascii() and text.isdigit() and len(text) < 10 else math.ceil((seconds_of(text) or 0) / 60)
    )
    if not 0 < minutes <= MOST_MINUTES:
        raise InputError(f"{text[:40]!r} is no time to add.", next_step="Give minutes such as 90, or 1h30m.")
    return minutes


def cost_of(job: AsyncJob, minutes: int) -> int:
    """The credits in wei that let the job run this much longer. Raises InputError while it has no price."""
    rate_wei = job.on_chain.rate_wei_per_minute
    if not rate_wei:
        raise InputError(
            f"Job {job.id} has no price yet: it is {job.status.words}.",
            next_step="Wait until a cluster has claimed it, or give an amount of credits.",
        )
    return rate_wei * minutes
