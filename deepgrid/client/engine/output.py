"""Reads a job's output at the log service, across outages of the service and new claims of the job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from deepgrid.client.display.text import LogLines
from deepgrid.client.errors import how_to_continue, note_interruption
from deepgrid.client.job_values import LogLine, LogStatus
from deepgrid.client.settings import patiently
from deepgrid.errors import GridError, InputError

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


@dataclass(frozen=True, slots=True)
class JobOutput:
    """The output of a job. Reading it raises AccessDenied and, without `follow`, ServiceError.

    Attributes:
        connection: The connection to the grid.
        job_id: Number of the job.
        follow: Continue until the log is complete. Outages of the service only delay it. Without it, the output ends
            with what is stored now, and an outage is retried for the client's patience.
        say: Gets a sentence about each outage and each new claim, and at the end if the log is known to lack something.
    """

    connection: Connection
    job_id: int
    follow: bool = False
    say: Callable[[str], None] = _silent

    async def pieces(self, start: int = 0, claimed_at: int = 0) -> AsyncIterator[Piece]:
        """Yield the output from the offset `start` in the claim of `claimed_at`; a negative one counts from the end."""
        services, settings = self.connection.session.services, self.connection.settings
        offset, claim = start, 1
        while True:
            with note_interruption(how_to_continue(self.job_id)):
                page = await patiently(
                    partial(services.read_log, self.job_id, offset, wait_s=settings.log_wait_s if self.follow else 0.0),
                    None if self.follow else settings.patience_s,
                    settings.longest_pause_s,
                    lambda error: self.say(f"The job's output cannot be read at the moment: {error.message}"),
                )
            if claimed_at and page.claimed_at != claimed_at:  # another cluster runs it now; its output starts again
                offset, claim, claimed_at = 0, claim + 1, page.claimed_at
                self.say("The job starts again on another cluster; its previous output is void.")
                continue
            if page.next_offset:
                claimed_at = page.claimed_at
            offset = page.next_offset
            ended = page.final or not (self.follow or page.data)
            if page.data or ended:
                yield Piece(page, claim, ended)
            if ended:
                return

    async def lines(self, tail: int | None = None) -> AsyncIterator[list[LogLine]]:
        """Yield the output as lines that are safe to print, in batches. With `tail`, from the last `tail` lines on."""
        lines, claim, start, claimed_at = LogLines(), 1, 0, 0
        if tail is not None:
            found, lines, chunk = await self._end(tail)
            yield [replace(line, claim=claim) for line in _last_of(found, tail)]
            if chunk.final or not self.follow:
                self._say_what_lacks(chunk)
                return
            start, claimed_at = chunk.next_offset, chunk.claimed_at
        async for piece in self.pieces(start, claimed_at):
            if piece.claim != claim:
                lines, claim = LogLines(), piece.claim
            yield _log_lines(lines, piece.chunk, claim, final=piece.final)
            if piece.final:
                self._say_what_lacks(piece.chunk)

    async def save(self, file: Path) -> LogStatus:
        """Write the output to a file, without what an earlier claim wrote. Raises InputError if that fails."""
        pieces = self.pieces()
        piece = await anext(pieces)  # before the file is opened: an earlier copy stays if the log cannot be read
        try:
            with file.open("wb") as target:
                claim, size = piece.claim, target.write(piece.chunk.data)
                async for piece in pieces:
                    if piece.claim != claim:
                        target.seek(0)
                        target.truncate()
                        claim, size = piece.claim, 0
                    size += target.write(piece.chunk.data)
        except OSError as error:
            raise InputError(f"{file} cannot be written: {error.strerror}.") from None
        return replace(status_of(piece.chunk), size=size)

    async def last_lines(self, count: int, patience_s: float) -> tuple[str, ...]:
        """Return the last lines of a job that is over; fewer or none if they cannot be read within `patience_s`."""
        lines, found, begin = LogLines(), list[str](), None
        try:
            async with asyncio.timeout(patience_s):
                async for piece in self.pieces(-FIRST_REACH_BYTES):
                    begin = piece.chunk.next_offset - len(piece.chunk.data) if begin is None else begin
                    found += lines.feed(piece.chunk.data, final=piece.final)
        except (GridError, TimeoutError):
            pass  # the job's own error matters more than that its output cannot be read
        return tuple(found[1:][-count:] if begin and len(found) > 1 else found[-count:])

    async def _end(self, count: int) -> tuple[list[LogLine], LogLines, LogChunk]:
        """Return the end of the stored output: its lines, the decoder with an unfinished line, and the last chunk.

        It has at least `count` whole lines if the last 16 MiB hold that many. Only with `follow`, an unfinished last
        line stays in the decoder.
        """
        reach, stored = FIRST_REACH_BYTES, replace(self, follow=False, say=_silent)
        while True:
            decoder, found, first, piece = LogLines(), list[LogLine](), None, None
            async for piece in stored.pieces(-reach):
                if first is None or first.claim != piece.claim:
                    decoder, found, first = LogLines(), [], piece
                ended = piece.chunk.final or (piece.final and not self.follow)
                found += _log_lines(decoder, piece.chunk, 1, final=ended)
            assert first is not None and piece is not None  # the last piece is given also if it is empty
            is_whole = first.chunk.next_offset == len(first.chunk.data)
            # More than count, because the first may be cut.
            if is_whole or len(_ends_of(found)) > count or reach >= LONGEST_REACH_BYTES:
                return found, decoder, piece.chunk
            reach *= 16

    def _say_what_lacks(self, chunk: LogChunk) -> None:
        status = status_of(chunk)
        if status.left_out or status.pending or (status.final and not status.closed):
            self.say(status.words)


def _ends_of(lines: list[LogLine]) -> list[int]:
    """Return the places of the parts that end their line."""
    return [place for place, line in enumerate(lines) if not line.continues]


def _last_of(lines: list[LogLine], count: int) -> list[LogLine]:
    """Return the last lines with all their parts."""
    ends = _ends_of(lines)
    begin = ends[-count - 1] + 1 if len(ends) > count else 0
    return lines[begin:] if count else []


def _log_lines(decoder: LogLines, chunk: LogChunk, claim: int, *, final: bool) -> list[LogLine]:
    """Return the lines that a chunk completes, each with the time of the part that completes it."""
    now, parts = datetime.now(UTC), list(chunk.parts())
    return [
        LogLine(now, text, claim, None if at_s is None else datetime.fromtimestamp(at_s, UTC), continues)
        for number, (data, at_s) in enumerate(parts, 1)
        for text, continues in decoder.feed_parts(data, final=final and number == len(parts))
    ]
