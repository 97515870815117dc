"""Reads of stored output. Each function is one statement, or none if nothing has to be read."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlalchemy import and_, select
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.lifecycle.job import Job
from deepgrid.services.core import ServiceCore
from deepgrid.services.messages import MAX_LOG_CHUNK_BYTES
from deepgrid.services.storage.database import Definition, Log, LogChunk

LATE_OUTPUT_S = 30  # a provider may send the rest of the output after it has reported the end
SILENCE_S = 600  # a provider that announced further output may be silent for this long
SECOND_NS = 10**9


@dataclass(frozen=True, slots=True)
class Piece:
    """Output of the claim made at `claimed_at`, from `offset` on.

    `at_ns` is the time when the services stored it, in unix nanoseconds. If `final`, the log is complete.
    """

    data: bytes = field(repr=False)
    offset: int
    at_ns: int
    final: bool
    claimed_at: int

    @property
    def end(self) -> int:
        """Offset after the last byte."""
        return self.offset + len(self.data)


@dataclass(frozen=True, slots=True)
class LogState:
    """The state of a log. `size` counts the bytes that are kept. `exists` is False until the first append.

    `left_out` counts the bytes of the output that are not in the log, `pending` those that its provider still has.
    """

    size: int = 0
    ended: bool = False
    updated_at: int = 0
    exists: bool = False
    left_out: int = 0
    pending: int = 0

    @classmethod
    def of(
        cls, kept_bytes: int, size: int, ended: bool, updated_at: int, left_out: int | None, pending: int | None
    ) -> LogState:
        """Return the state by the columns of the log's row, where the service keeps `kept_bytes` per log."""
        dropped = max(0, size - kept_bytes)
        return cls(size - dropped, ended, updated_at, True, (left_out or 0) + dropped, pending or 0)


async def state_of(core: ServiceCore, session: AsyncSession, job: Job) -> LogState:
    """Return the state of the log of the job's present claim."""
    log = await session.get(Log, (job.id, job.claimed_at))
    if log is None:
        return LogState()
    return LogState.of(core.max_log_bytes, log.size, log.final, log.updated_at, log.left_out, log.pending)


async def pieces_from(
    core: ServiceCore, session: AsyncSession, job_id: int, claimed_at: int, offset: int, most_bytes: int
) -> tuple[LogState, list[Piece]]:
    """Return the state of a log, and at most `most_bytes` of its output from `offset` on."""
    covers = and_(
        LogChunk.job_id == Log.job_id,
        LogChunk.claimed_at == Log.claimed_at,
        LogChunk.offset > offset - MAX_LOG_CHUNK_BYTES,  # lets the primary key find the first chunk
        LogChunk.offset < offset + most_bytes,
        LogChunk.offset + LogChunk.length > offset,
    )
    facts = (Log.size, Log.final, Log.updated_at, Log.left_out, Log.pending)
    rows = await session.stream(
        select(*facts, LogChunk.offset, LogChunk.sealed, LogChunk.at_ns)
        .outerjoin(LogChunk, covers)
        .where(Log.job_id == job_id, Log.claimed_at == claimed_at)
        .order_by(LogChunk.offset)
        .execution_options(yield_per=8)
    )
    state, pieces, left = LogState(), list[Piece](), most_bytes
    async for size, ended, updated_at, left_out, pending, start, sealed, at_ns in rows:
        state = LogState.of(core.max_log_bytes, size, ended, updated_at, left_out, pending)
        if sealed is None:
            break
        skipped = max(0, offset - start)
        data = core.vault.unseal(sealed)[skipped : skipped + left]
        pieces.append(Piece(data, start + skipped, at_ns or updated_at * SECOND_NS, False, claimed_at))
        left -= len(data)
        if left <= 0:
            break
    await rows.close()
    return state, pieces


@dataclass(frozen=True, slots=True)
class Ending:
    """Information for readers about the end of a log.

    `over`: nothing will be added. `closed`: its provider said so, or no output was expected. `left_out` and `pending`
    are as in `LogState`.
    """

    over: bool = False
    closed: bool = False
    left_out: int = 0
    pending: int = 0


async def ending_of(core: ServiceCore, session: AsyncSession, job: Job, log: LogState) -> Ending:
    """Return the information for readers about the end of the log."""
    closed = log.ended or (not job.status.hot and not log.exists and await _has_no_output(session, job))
    over = closed or (not job.status.hot and _is_silent(job, log, core.clock()))
    return Ending(over, closed, log.left_out, log.pending)


async def _has_no_output(session: AsyncSession, job: Job) -> bool:
    """Return whether no output was expected: the job's definition ships none, or no provider claimed the job."""
    definition = await session.get(Definition, job.definition.definition_hash)
    silent = definition is not None and definition.uploader == job.customer and not definition.enable_logging
    return silent or job.claimed_at == 0


def _is_silent(job: Job, log: LogState, now: int) -> bool:
    """Return whether the silence of an ended job's provider is so long that nothing more is expected."""
    silence_s = SILENCE_S if log.pending else LATE_OUTPUT_S
    return now - log.updated_at > silence_s and abs(now - job.ended_at) > LATE_OUTPUT_S
