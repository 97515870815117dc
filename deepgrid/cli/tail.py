"""Follows a job's output through the log service, over outages of the service and new claims of the job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from deepgrid.cli.text import LogLines
from deepgrid.customer.session import CustomerSession
from deepgrid.errors import ServiceError

WAIT_S = 10.0  # how long one question may stay open
AGAIN_S = (0.5, 1.0, 2.0, 5.0)  # pauses while the service does not answer


async def follow_log(session: CustomerSession, job_id: int, say: Callable[[str], None]) -> AsyncIterator[list[str]]:
    """Lines as the job writes them, until its log is complete; `say` is told of outages and new starts.

    Raises AccessDenied for another customer's job.
    """
    lines, offset, claim, failures = LogLines(), 0, 0, 0
    while True:
        try:
            page = await session.services.read_log(job_id, offset, wait_s=WAIT_S)
        except ServiceError as error:
            if not error.transient:
                raise
            if failures == 0:
                say(f"The job's output cannot be read at the moment: {error.message}")
            await asyncio.sleep(AGAIN_S[min(failures, len(AGAIN_S) - 1)])
            failures += 1
            continue
        failures = 0
        if offset and page.claimed_at != claim:  # another cluster runs it now, its output begins anew
            lines, offset = LogLines(), 0
            say("The job starts anew; what it printed before is void.")
            continue
        claim, offset = page.claimed_at, page.next_offset
        yield lines.feed(page.data, final=page.final)
        if page.final:
            return


async def read_log(session: CustomerSession, job_id: int) -> AsyncIterator[list[str]]:
    """Lines that the job has written until now."""
    lines, offset = LogLines(), 0
    while True:
        page = await session.services.read_log(job_id, offset)
        ended = page.final or not page.data
        offset = page.next_offset
        yield lines.feed(page.data, final=ended)
        if ended:
            return
