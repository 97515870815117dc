"""The log service: a job's provider appends by offset, its customer reads by offset.

A log belongs to one claim of a job, so outputs of different providers never mix.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, TypedDict

from fastapi import APIRouter, Depends, Query, Response
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.context import Context, JobId, Services
from deepgrid.services.following import LogTail, require_customer
from deepgrid.services.following.stored import SECOND_NS, Ending, Piece, ending_of, pieces_from, state_of
from deepgrid.services.handlers.authentication import SignedChunk, SignedReader
from deepgrid.services.messages import MAX_LOG_CHUNK_BYTES, MAX_WAIT_S, Appended
from deepgrid.services.refusal import Refusal
from deepgrid.services.storage.database import Log, LogChunk

router = APIRouter()
Offset = Annotated[int, Query(ge=0, lt=2**53)]
MOST_TIMES = 64  # different seconds in one answer, so that its header stays below 2 KiB
OffsetOrTail = Annotated[int, Query(gt=-(2**53), lt=2**53)]


@dataclass(frozen=True, slots=True)
class ChunkQuery:
    """The place of a chunk, by the query of its request.

    `offset`: position of its first byte in the log. `source`: position after it in the provider's file. `left_out`:
    bytes of the file that the log leaves out before this position. `pending`: bytes of it that follow. Without
    `source`, the chunk is the part of the file from `offset` on.
    """

    offset: Offset
    final: bool = False
    source: Annotated[int | None, Query(ge=0, lt=2**53)] = None
    left_out: Annotated[int, Query(ge=0, lt=2**53)] = 0
    pending: Annotated[int, Query(ge=0, lt=2**53)] = 0
    claimed_at: Annotated[int | None, Query(ge=0, lt=2**53)] = None


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Output for a reader: bytes from `offset` on, and whether the log is complete.

    `times` says when the service stored the bytes: unix seconds, and how many bytes came in this second.
    """

    data: bytes = field(repr=False)
    offset: int
    final: bool
    claimed_at: int
    ending: Ending
    times: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, pieces: Sequence[Piece], offset: int, job: Job, ending: Ending) -> Excerpt:
        """Return the output of the pieces, up to a number of different seconds. The reader asks for the rest."""
        times: list[tuple[int, int]] = []
        taken: list[bytes] = []
        for piece in pieces:
            at_s = piece.at_ns // SECOND_NS
            if times and times[-1][0] == at_s:
                times[-1] = at_s, times[-1][1] + len(piece.data)
            elif len(times) < MOST_TIMES:
                times.append((at_s, len(piece.data)))
            else:
                break
            taken.append(piece.data)
        final = len(taken) == len(pieces) and bool(pieces) and pieces[-1].final
        return cls(b"".join(taken), offset, final, job.claimed_at, ending, tuple(times))

    def headers(self) -> dict[str, str]:
        return {
            "X-Offset": str(self.offset),
            "X-Next-Offset": str(self.offset + len(self.data)),
            "X-Final": "true" if self.final else "false",
            "X-Claimed-At": str(self.claimed_at),
            "X-Left-Out": str(self.ending.left_out),
            "X-Pending": str(self.ending.pending),
            "X-Closed": "true" if self.final and self.ending.closed else "false",
            "X-Times": ",".join(f"{at_s}:{length}" for at_s, length in self.times if length),
        }


@router.post("/v1/jobs/{job_id}/log", response_model_exclude_none=True)
async def append(
    job_id: JobId, request: SignedChunk, context: Services, query: Annotated[ChunkQuery, Depends()]
) -> Appended:
    """Append output from `offset` on. Bytes that are stored already are skipped. A gap is refused with 409.

    With `source`, a chunk at any other place than the log's end is refused with 409.
    """
    request.look_up()
    job = await context.job(job_id)
    if query.claimed_at is not None and job.claimed_at < query.claimed_at:
        raise Refusal(425, f"this service's node does not show that claim of job {job_id} yet")
    is_its = job.provider == request.address and query.claimed_at in (None, job.claimed_at)
    if not is_its or job.status in (JobStatus.PENDING, JobStatus.META_SCHEDULED):
        raise Refusal(403, f"job {job_id} is not a job of {request.address}")
    async with context.database.write() as session:
        await request.accept(session)
        answer, stored = await _append(context, session, job, query, request.body)
        await context.log_tails.news.tell(session, job_id)
    context.metrics.stored_output(stored)
    context.log_tails.announce(job_id)
    return answer


@router.get("/v1/jobs/{job_id}/log")
async def read(
    job_id: JobId,
    request: SignedReader,
    context: Services,
    offset: OffsetOrTail = 0,
    wait: Annotated[float, Query(ge=0, le=MAX_WAIT_S)] = 0,
) -> Response:
    """Return output from `offset` on; a negative one counts from the end of the stored output.

    If there is no output yet, wait up to `wait` seconds for output or for the end.
    """
    request.look_up()
    if not wait:
        job = await context.job(job_id)
        require_customer(job, request.address)
        excerpt = await _excerpt_now(context, job, offset)
        await request.accept()
        return _answer(excerpt)
    async with context.log_tails.join(job_id, request.address) as tail:
        excerpt = await _excerpt_of(tail, offset)
        await request.accept()
        if not (excerpt.data or excerpt.final):
            with context.log_tails.counted(job_id), context.admission.running.lend(request.source):
                excerpt = await _wait_for_more(tail, request.address, offset, wait)
            await request.require_session()  # it may have ended while the reader waited
    return _answer(excerpt)


async def _excerpt_now(context: Context, job: Job, offset: int) -> Excerpt:
    """Return the present content of the database."""
    async with context.database.read() as session:
        if offset < 0:
            offset = max(0, (await state_of(context, session, job)).size + offset)
        log, pieces = await pieces_from(context, session, job.id, job.claimed_at, offset, MAX_LOG_CHUNK_BYTES)
        ending = await ending_of(context, session, job, log)
    excerpt = Excerpt.of(pieces, offset, job, ending)
    return replace(excerpt, final=ending.over and offset + len(excerpt.data) >= log.size)


async def _excerpt_of(tail: LogTail, offset: int) -> Excerpt:
    """Return the present content of the followed log."""
    job, ending = tail.job, tail.ending
    offset = tail.position(offset)
    return Excerpt.of(await tail.pieces(job.claimed_at, offset, MAX_LOG_CHUNK_BYTES), offset, job, ending)


async def _wait_for_more(tail: LogTail, reader: str, offset: int, wait_s: float) -> Excerpt:
    """Wait until there is output, the log ends, or the time is over. Refuses as `LogTail.require`."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    while True:
        news = tail.news
        tail.require(reader)
        excerpt = await _excerpt_of(tail, offset)
        left = deadline - loop.time()
        if excerpt.data or excerpt.final or left <= 0:
            return excerpt
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(news.wait(), left)


def _answer(excerpt: Excerpt) -> Response:
    return Response(excerpt.data, media_type="application/octet-stream", headers=excerpt.headers())


async def _append(
    context: Context, session: AsyncSession, job: Job, query: ChunkQuery, data: bytes
) -> tuple[Appended, int]:
    """Store the new part of `data`, and what the provider says of the rest. Returns the answer and the stored bytes."""
    log = await _log_of(session, job, context.clock())
    facts: Facts = {} if query.source is None else _facts(context, log)
    if query.offset > log.size or (facts and query.offset != log.size):
        raise Refusal(409, f"the log ends at {log.size}", next_offset=log.size, **facts)
    fresh = data[log.size - query.offset :]
    kept = fresh[: max(0, context.max_log_bytes - log.size)]
    if kept:
        chunk = LogChunk(job_id=job.id, claimed_at=job.claimed_at, offset=log.size, length=len(kept))
        chunk.sealed = context.vault.seal(kept)
        session.add(chunk)
    log.size += len(fresh)
    if query.source is None:
        log.source = None if log.source is None else log.source + len(fresh)
    else:
        log.source, log.left_out, log.pending = query.source, query.left_out, query.pending
        facts = _facts(context, log)
    log.final = log.final or (query.final and query.offset + len(data) == log.size)
    log.updated_at = context.clock()
    return Appended(next_offset=log.size, **facts), len(kept)


class Facts(TypedDict, total=False):
    """The values that a provider needs to continue after a restart, as in `Appended`."""

    next_source: int
    left_out: int
    max_bytes: int


def _facts(context: Context, log: Log) -> Facts:
    source = log.size if log.source is None else log.source
    return {"next_source": source, "left_out": log.left_out or 0, "max_bytes": context.max_log_bytes}


async def _log_of(session: AsyncSession, job: Job, now: int) -> Log:
    """Return the locked row of the log. The first append makes it; two processes may try that at once."""
    key = (job.id, job.claimed_at)
    log = await session.get(Log, key, with_for_update=True)
    if log is None:
        with contextlib.suppress(IntegrityError):  # another process was first
            async with session.begin_nested():
                session.add(Log(job_id=job.id, claimed_at=job.claimed_at, size=0, final=False, updated_at=now))
        log = await session.get_one(Log, key, with_for_update=True)
    return log
