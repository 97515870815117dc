"""Reads a job's output at the log service, across outages of the service and new claims of the job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from deepgrid.client.display.text import LogLines
from deepgrid.client.errors import how_to_continue, note_interruption
from deepgrid.client.job_values import LogLine, LogStatus
from deepgrid.client.settings import patiently
from deepgrid.errors import GridError

if TYPE_CHECKING:
    from deepgrid.client.engine.connection import Connection
    from deepgrid.services.client import LogChunk  # loads much that reading verbs do not need

FIRST_REACH_BYTES = 64 * 1024  # the last lines are looked for in this much of the end, then in 16 times as much, ...
LONGEST_REACH_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk of a job's output.

    Attributes:
        chunk: The chunk. It ends the output of its claim if it is final.
        claim: 1 for the first claim that was read, 2 for the next one, which starts again.
        final: Whether this is the last piece.
    """

    chunk: LogChunk
    claim: int
    final: bool


def _silent(_: str) -> None:
    return None


def status_of(chunk: LogChunk) -> LogStatus:
    """Return how complete a log is, by its last chunk."""
    return LogStatus(chunk.next_offset, chunk.left_out, chunk.pending, chunk.final, chunk.closed)


async def pieces(
    connection: Connection, job_id: int, *, follow: bool, start: int = 0, claimed_at: int = 0,
    say: Callable[[str], None] = _silent,
) -> AsyncIterator[Piece]:  # fmt: skip
    """Yield the job's output, from the offset `start` in the claim of `claimed_at` on; a negative one counts from the
    end.

    With `follow` it goes on until the log is complete, and outages of the service only delay it. Without, it ends with
    what is stored now, and an outage is retried for the client's patience. `say` gets a sentence about each outage and
    each new claim. Raises AccessDenied, and without `follow` ServiceError.
    """
    services, settings = connection.session.services, connection.settings
    offset, claim = start, 1
    while True:
        with note_interruption(how_to_continue(job_id)):
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
            yield Piece(page, claim, ended)
        if ended:
            return


async def lines_of(
    connection: Connection, job_id: int, *, follow: bool, tail: int | None = None,
    say: Callable[[str], None] = _silent,
) -> AsyncIterator[list[LogLine]]:  # fmt: skip
    """Yield the job's output as lines that are safe to print, in batches. With `tail`, from the last `tail` lines on.

    At the end `say` gets a sentence if the log is known to lack something. Raises as `pieces` does.
    """
    lines, claim, start, claimed_at = LogLines(), 1, 0, 0
    if tail is not None:
        end = await _end_of(connection, job_id, tail, follow=follow)
        yield _log_lines(end.lines[-tail:] if tail else [], claim)
        if end.last.chunk.final or not follow:
            _say_what_lacks(status_of(end.last.chunk), say)
            return
        lines, start, claimed_at = end.decoder, end.last.chunk.next_offset, end.last.chunk.claimed_at
    async for piece in pieces(connection, job_id, follow=follow, start=start, claimed_at=claimed_at, say=say):
        if piece.claim != claim:
            lines, claim = LogLines(), piece.claim
        yield _log_lines(lines.feed(piece.chunk.data, final=piece.final), claim)
        if piece.final:
            _say_what_lacks(status_of(piece.chunk), say)


def _say_what_lacks(status: LogStatus, say: Callable[[str], None]) -> None:
    if status.left_out or status.pending or (status.final and not status.closed):
        say(status.words)


async def last_lines(connection: Connection, job_id: int, count: int, patience_s: float) -> tuple[str, ...]:
    """Return the last lines of a job that is over; fewer or none if they cannot be read within `patience_s`."""
    lines, found, begin = LogLines(), list[str](), None
    try:
        async with asyncio.timeout(patience_s):
            async for piece in pieces(connection, job_id, follow=True, start=-FIRST_REACH_BYTES):
                begin = piece.chunk.next_offset - len(piece.chunk.data) if begin is None else begin
                found += lines.feed(piece.chunk.data, final=piece.final)
    except (GridError, TimeoutError):
        pass  # the job's own error matters more than that its output cannot be read
    return tuple(found[1:][-count:] if begin and len(found) > 1 else found[-count:])


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a log: its lines, the decoder with the unfinished line, and the last piece."""

    lines: list[str]
    decoder: LogLines
    last: Piece


async def _end_of(connection: Connection, job_id: int, count: int, *, follow: bool) -> _End:
    """Return the end of the stored output, with at least `count` whole lines if the last 16 MiB have that many.

    With `follow`, an unfinished last line stays in the decoder.
    """
    reach = FIRST_REACH_BYTES
    while True:
        decoder, found, first, piece = LogLines(), list[str](), None, None
        async for piece in pieces(connection, job_id, follow=False, start=-reach):
            if first is None or first.claim != piece.claim:
                decoder, found, first = LogLines(), [], piece
            found += decoder.feed(piece.chunk.data, final=piece.chunk.final or (piece.final and not follow))
        assert first is not None and piece is not None  # the last piece is given also if it is empty
        is_whole = first.chunk.next_offset == len(first.chunk.data)
        if is_whole or len(found) > count or reach >= LONGEST_REACH_BYTES:  # more than count: the first may be cut
            return _End(found, decoder, piece)
        reach *= 16


def _log_lines(texts: list[str], claim: int) -> list[LogLine]:
    now = datetime.now(UTC)
    return [LogLine(now, text, claim) for text in texts]
