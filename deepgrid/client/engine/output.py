"""Reads a job's output at the log service, across outages of the service and new claims of the job."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial

from deepgrid.client.engine.connection import Connection
from deepgrid.client.engine.interruption import continues, noted
from deepgrid.client.engine.patience import patiently


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a job's output.

    Attributes:
        data: The bytes.
        final: Whether the output of this claim is complete.
        claim: 1 for the first claim that was read, 2 for the next one, which starts anew.
    """

    data: bytes = field(repr=False)
    final: bool
    claim: int


def _silent(_: str) -> None:
    return None


async def pieces(
    connection: Connection, job_id: int, *, follow: bool, start: int = 0, say: Callable[[str], None] = _silent
) -> AsyncIterator[Piece]:
    """The job's output, from the offset `start` on; a negative one counts from the end.

    With `follow` it goes on until the log is complete, and outages of the service only delay it. Without, it ends with
    what is stored now, and an outage is retried for the client's patience.

    Args:
        connection: The connection.
        job_id: Id of the job.
        follow: Whether to wait for more output.
        start: Offset of the first byte.
        say: Gets a sentence about each outage and each new claim.

    Raises:
        AccessDenied: The job is another customer's.
        ServiceError: Without `follow`, the service does not answer.
    """
    services, settings = connection.session.services, connection.settings
    offset, claim, claimed_at = start, 1, 0
    while True:
        with noted(continues(job_id)):
            page = await patiently(
                partial(services.read_log, job_id, offset, wait_s=settings.log_wait_s if follow else 0.0),
                None if follow else settings.patience_s,
                settings.longest_pause_s,
                lambda error: say(f"The job's output cannot be read at the moment: {error.message}"),
            )
        if claimed_at and page.claimed_at != claimed_at:  # another cluster runs it now; its output starts again
            offset, claim, claimed_at = 0, claim + 1, page.claimed_at
            say("The job starts again on another cluster; its previous output is void.")
            continue
        if page.next_offset:
            claimed_at = page.claimed_at
        offset = page.next_offset
        ended = page.final or not (follow or page.data)
        if page.data or ended:
            yield Piece(page.data, ended, claim)
        if ended:
            return
