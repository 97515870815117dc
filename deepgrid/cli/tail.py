"""Follows a job's output at the log service, across outages of the service and new claims of the job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from deepgrid.client.display.text import LogLines
from deepgrid.customer.session import CustomerSession
from deepgrid.errors import ServiceError

WAIT_S = 10.0  # timeout of one long poll
AGAIN_S = (0.5, 1.0, 2.0, 5.0)  # first and longest pause while the service does not answer


async def follow_log(session: CustomerSession, job_id: int, say: Callable[[str], None]) -> AsyncIterator[list[str]]:
    """Lines of the job until its log is complete. `say` gets remarks on outages and new starts.

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
        if offset and page.claimed_at != claim:  # another cluster runs it now; its output starts again
            lines, offset = LogLines(), 0
            say("The job starts again on another cluster; its previous output is void.")
            continue
        claim, offset = page.claimed_at, page.next_offset
        yield lines.feed(page.data, final=page.final)
        if page.final:
            return


async def read_log(session: CustomerSession, job_id: int) -> AsyncIterator[list[str]]:
    """The lines that the job has written so far."""
    lines, offset = LogLines(), 0
    while True:
        page = await session.services.read_log(job_id, offset)
        ended = page.final or not page.data
        offset = page.next_offset
        yield lines.feed(page.data, final=ended)
        if ended:
            return
