"""Reads of stored output. Each function is one statement, or none if nothing has to be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from sqlalchemy import and_, select
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.lifecycle.job import Job
from deepgrid.services.admission import Admission
from deepgrid.services.database import Database, Definition, Log, LogChunk
from deepgrid.services.messages import MAX_LOG_CHUNK_BYTES
from deepgrid.services.vault import Vault

LATE_OUTPUT_S = 30  # a provider may send the rest of the output after it has reported the end
SECOND_NS = 10**9


class Parts(Protocol):
    """The parts of a running service that readers of logs need. `Context` has them."""

    database: Database
    vault: Vault
    max_log_bytes: int
    admission: Admission

    @property
    def clock(self) -> Callable[[], int]:
        """Gives unix seconds."""
        ...

    async def job(self, job_id: int) -> Job:
        """The job as the chain has it. Refuses with 404 or 503."""
        ...


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
    """The state of a log. `size` counts the bytes that are kept. `exists` is False until the first append."""

    size: int = 0
    ended: bool = False
    updated_at: int = 0
    exists: bool = False


async def state_of(parts: Parts, session: AsyncSession, job: Job) -> LogState:
    """The state of the log of the job's present claim."""
    log = await session.get(Log, (job.id, job.claimed_at))
    return LogState(min(log.size, parts.max_log_bytes), log.final, log.updated_at, True) if log else LogState()


async def pieces_from(
    parts: Parts, session: AsyncSession, job_id: int, claimed_at: int, offset: int, most_bytes: int
) -> tuple[LogState, list[Piece]]:
    """The state of a log, and at most `most_bytes` of its output from `offset` on."""
    covers = and_(
        LogChunk.job_id == Log.job_id,
        LogChunk.claimed_at == Log.claimed_at,
        LogChunk.offset > offset - MAX_LOG_CHUNK_BYTES,  # lets the primary key find the first chunk
        LogChunk.offset + LogChunk.length > offset,
    )
    columns = (Log.size, Log.final, Log.updated_at, LogChunk.offset, LogChunk.sealed, LogChunk.at_ns)
    rows = await session.stream(
        select(*columns)
        .outerjoin(LogChunk, covers)
        .where(Log.job_id == job_id, Log.claimed_at == claimed_at)
        .order_by(LogChunk.offset)
        .execution_options(yield_per=8)
    )
    state, pieces, left = LogState(), list[Piece](), most_bytes
    async for size, ended, updated_at, start, sealed, at_ns in rows:
        state = LogState(min(size, parts.max_log_bytes), ended, updated_at, True)
        if sealed is None:
            break
        skipped = max(0, offset - start)
        data = parts.vault.unseal(sealed)[skipped : skipped + left]
        pieces.append(Piece(data, start + skipped, at_ns or updated_at * SECOND_NS, False, claimed_at))
        left -= len(data)
        if left <= 0:
            break
    await rows.close()
    return state, pieces


async def is_over(parts: Parts, session: AsyncSession, job: Job, log: LogState) -> bool:
    """Whether nothing will be added to the log."""
    if log.ended:
        return True
    if job.status.hot:
        return False
    definition = await session.get(Definition, job.definition.definition_hash)
    silent = definition is not None and definition.uploader == job.customer and not definition.enable_logging
    if not log.exists and (silent or job.claimed_at == 0):
        return True
    now = parts.clock()
    return now - log.updated_at > LATE_OUTPUT_S and abs(now - job.ended_at) > LATE_OUTPUT_S
