"""Settings of the client: how long it retries, how often it polls, how much it asks for at once. And the retries."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, TypeVar, cast

from deepgrid.errors import GridError

T = TypeVar("T")
logger = logging.getLogger("deepgrid.client")
FIRST_PAUSE_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Times and limits of a client. All durations are seconds.

    Attributes:
        patience_s: How long a single read is retried while the node or the services do not answer. Waiting for a
            job and following a log retry without a limit.
        note_patience_s: The same for tags, notes and places in sweeps, which are noted just before a job is requested.
            The longer of the two times counts.
        requests_at_once: Number of requests to the services that run at the same time.
        poll_s: Interval between two looks at the jobs that are waited for.
        longest_pause_s: Longest pause between two retries.
        log_wait_s: How long the log service may hold one request while it waits for output.
        remarks_poll_s: Interval between two reads of the remarks on a job that is watched.
        queue_url: URL of a queue oracle that is asked for the place of waiting jobs, instead of the services.
        queue_poll_s: Interval between two reads of the place of a job that is watched.
        late_output_s: How long a live view waits for more output of a job that is over. The services close the log
            of such a job after 30 s.
        last_lines_s: How long the error of a failed job waits for the last lines of its output.
        confirmations: Blocks that must follow a block before `watch` of the grid reports its changes. With 0 a change
            is reported at once, and may be of a block that the chain replaces later.
        downloads_at_once: Number of files that `download` fetches at the same time.
        quote_age_s: Age at which a quote expires.
        key_wait_s: How long a submission waits while another one with the same idempotency key is under way.
        mining_wait_s: How long a submission with an idempotency key waits for earlier transactions to be mined.
        refill_s: After this time `map` requests the next jobs even if few of its places are free.
    """

    patience_s: float = 60.0
    note_patience_s: float = 60.0
    requests_at_once: int = 16
    poll_s: float = 1.0
    longest_pause_s: float = 5.0
    log_wait_s: float = 20.0
    remarks_poll_s: float = 1.0
    queue_url: str = ""
    queue_poll_s: float = 5.0
    late_output_s: float = 45.0
    last_lines_s: float = 3.0
    confirmations: int = 0
    downloads_at_once: int = 8
    quote_age_s: float = 60.0
    key_wait_s: float = 120.0
    mining_wait_s: float = 120.0
    refill_s: float = 5.0


DEFAULTS = ClientSettings()


def pauses_s(longest_s: float) -> Callable[[int], float]:
    """Return the pause before retry number 0, 1, ...: it doubles from 0.25 s up to `longest_s`, with jitter."""
    return lambda failures: min(FIRST_PAUSE_S * 2 ** min(failures, 10), longest_s) * random.uniform(0.5, 1.0)


async def patiently(
    read: Callable[[], Awaitable[T]],
    patience_s: float | None,
    longest_pause_s: float,
    on_failure: Callable[[GridError], None] = lambda _: None,
    progress: Callable[[], int] = lambda: 0,
) -> T:
    """Return the result of `read`, which is retried while it fails with a transient error. None means without a limit.

    `on_failure` gets the first error of an outage. The patience begins again whenever `progress` has grown. Raises a
    permanent error at once, and the last transient one when the patience is over.
    """
    deadline = None if patience_s is None else time.monotonic() + patience_s
    pause_s = pauses_s(longest_pause_s)
    failures, most = 0, progress()
    while True:
        try:
            return await read()
        except GridError as error:
            if (now := progress()) > most:
                most, failures = now, 0
                deadline = None if patience_s is None else time.monotonic() + patience_s
            wait_s = pause_s(failures)
            if not error.transient or (deadline is not None and time.monotonic() + wait_s > deadline):
                raise
            if failures == 0:
                on_failure(error)
        failures += 1
        await asyncio.sleep(wait_s)


async def wait_until_set(event: asyncio.Event, longest_s: float) -> None:
    """Wait for an event, but not longer than `longest_s`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(longest_s):
            await event.wait()


def patient(reader: T, patience_s: float | None, settings: ClientSettings) -> T:
    """`reader`, with async methods that are retried for `patience_s`, or without a limit."""
    return cast(T, _PatientReader(reader, patience_s, settings.longest_pause_s))


class _PatientReader:
    def __init__(self, reader: object, patience_s: float | None, longest_pause_s: float) -> None:
        self._reader = reader
        self._patience = patience_s, longest_pause_s

    def __getattr__(self, name: str) -> Any:
        read = getattr(self._reader, name)
        if not iscoroutinefunction(read):
            return read

        async def retried(*args: Any, **options: Any) -> Any:
            return await patiently(lambda: read(*args, **options), *self._patience, log_outage)

        return retried


def log_outage(error: GridError) -> None:
    """Log the first error of an outage."""
    logger.warning("a read failed, trying again: %s", error)
