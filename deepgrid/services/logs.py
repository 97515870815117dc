"""The log service: a job's provider appends by offset, its customer reads by offset.

A log belongs to one claim of a job, so outputs of different providers never mix.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.authentication import SignedChunk, SignedReader
from deepgrid.services.context import Context, JobId, Services
from deepgrid.services.database import Definition, Log, LogChunk
from deepgrid.services.messages import MAX_LOG_CHUNK_BYTES, MAX_WAIT_S, Appended
from deepgrid.services.refusal import Refusal

LOOK_AGAIN_S = 2.0  # while a reader waits; finds chunks that another process stored, and the job's end
LATE_OUTPUT_S = 30  # a provider may send the rest of the output after it has reported the end

router = APIRouter()
Offset = Annotated[int, Query(ge=0, lt=2**53)]
OffsetOrTail = Annotated[int, Query(gt=-(2**53), lt=2**53)]


@dataclass(frozen=True)
class Excerpt:
    """Output for a reader: bytes from `offset` on, and whether the log is complete."""

    data: bytes
    offset: int
    next_offset: int
    final: bool
    claimed_at: int

    def headers(self) -> dict[str, str]:
        return {
            "X-Offset": str(self.offset),
            "X-Next-Offset": str(self.next_offset),
            "X-Final": "true" if self.final else "false",
            "X-Claimed-At": str(self.claimed_at),
        }


@router.post("/v1/jobs/{job_id}/log")
async def append(
    job_id: JobId, request: SignedChunk, context: Services, offset: Offset, final: bool = False
) -> Appended:
    """Append output from `offset` on. Bytes that are stored already are skipped. A gap is refused with 409."""
    request.look_up()
    job = await context.job(job_id)
    if job.provider != request.address or job.status in (JobStatus.PENDING, JobStatus.META_SCHEDULED):
        raise Refusal(403, f"job {job_id} is not a job of {request.address}")
    async with context.database.write() as session:
        await request.accept(session)
        size = await _append(context, session, job, offset, request.body, final)
    context.changes.announce(job_id)
    return Appended(next_offset=size)


@router.get("/v1/jobs/{job_id}/log")
async def read(
    job_id: JobId,
    request: SignedReader,
    context: Services,
    offset: OffsetOrTail = 0,
    wait: Annotated[float, Query(ge=0, le=MAX_WAIT_S)] = 0,
) -> Response:
    """Output from `offset` on; a negative one counts from the end of what is stored.

    If there is no output yet, wait up to `wait` seconds for output or for the end.
    """
    request.look_up()
    excerpt = await _look(context, job_id, request.address, offset)
    await request.accept()
    if wait and not (excerpt.data or excerpt.final):
        with _followers(context, request.source, job_id):
            excerpt = await _wait(context, job_id, request.address, offset, wait)
        await request.require_session()  # it may have ended while the reader waited
    return Response(excerpt.data, media_type="application/octet-stream", headers=excerpt.headers())


async def _look(context: Context, job_id: int, reader: str, offset: int) -> Excerpt:
    """The output that is stored now, for the job's customer."""
    job = await context.job(job_id)
    if job.customer != reader:
        raise Refusal(403, f"only its customer reads the log of job {job_id}")
    return await _excerpt(context, job, offset)


async def _wait(context: Context, job_id: int, reader: str, offset: int, wait_s: float) -> Excerpt:
    """Wait until there is output, the log ends, or the time is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    with context.changes.watch(job_id) as changed:
        while True:
            changed.clear()
            excerpt = await _look(context, job_id, reader, offset)
            left = deadline - loop.time()
            if excerpt.data or excerpt.final or left <= 0:
                return excerpt
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), min(left, LOOK_AGAIN_S))


@contextlib.contextmanager
def _followers(context: Context, source: str, job_id: int) -> Iterator[None]:
    """Count a waiting reader. Refuses with 429 if there are too many."""
    admission = context.admission
    with admission.followers_by_address.hold(source) as one, admission.followers_by_job.hold(str(job_id)) as other:
        if not (one and other):
            raise Refusal(
                429, f"too many requests wait for the output of job {job_id}, or from your address", retry_after_s=2
            )
        yield


async def _append(context: Context, session: AsyncSession, job: Job, offset: int, data: bytes, final: bool) -> int:
    """Store the new part of `data`. Returns the log's size."""
    key = (job.id, job.claimed_at)
    log = await session.get(Log, key, with_for_update=True)
    if log is None:
        log = Log(job_id=job.id, claimed_at=job.claimed_at, size=0, final=False)
        session.add(log)
    if offset > log.size:
        raise Refusal(409, f"the log ends at {log.size}", next_offset=log.size)
    fresh = data[log.size - offset :]
    kept = fresh[: max(0, context.max_log_bytes - log.size)]
    if kept:
        chunk = LogChunk(job_id=job.id, claimed_at=job.claimed_at, offset=log.size, length=len(kept))
        chunk.sealed = context.vault.seal(kept)
        session.add(chunk)
    log.size += len(fresh)
    log.final = log.final or (final and offset + len(data) == log.size)
    log.updated_at = context.clock()
    return log.size


async def _excerpt(context: Context, job: Job, offset: int) -> Excerpt:
    async with context.database.read() as session:
        log = await session.get(Log, (job.id, job.claimed_at))
        size = min(log.size, context.max_log_bytes) if log else 0
        if offset < 0:
            offset = max(0, size + offset)
        data = await _bytes(context, session, job, offset) if offset < size else b""
        reached = offset + len(data)
        final = reached >= size and await _is_over(context, session, job, log)
    return Excerpt(data, offset, reached, final, job.claimed_at)


async def _bytes(context: Context, session: AsyncSession, job: Job, offset: int) -> bytes:
    """Stored bytes from `offset` on, at most one full answer."""
    chunks = await session.stream_scalars(
        select(LogChunk)
        .where(
            LogChunk.job_id == job.id,
            LogChunk.claimed_at == job.claimed_at,
            LogChunk.offset + LogChunk.length > offset,
        )
        .order_by(LogChunk.offset)
        .execution_options(yield_per=16)
    )
    found = bytearray()
    async for chunk in chunks:
        data = context.vault.unseal(chunk.sealed)
        found += data[max(0, offset - chunk.offset) :]
        if len(found) >= MAX_LOG_CHUNK_BYTES:
            break
    await chunks.close()
    return bytes(found[:MAX_LOG_CHUNK_BYTES])


async def _is_over(context: Context, session: AsyncSession, job: Job, log: Log | None) -> bool:
    """Whether the log is complete."""
    if log is not None and log.final:
        return True
    if job.status.hot:
        return False
    definition = await session.get(Definition, job.definition.definition_hash)
    silent = definition is not None and definition.uploader == job.customer and not definition.enable_logging
    if log is None and (silent or job.claimed_at == 0):
        return True
    now, last = context.clock(), log.updated_at if log else 0
    return now - last > LATE_OUTPUT_S and abs(now - job.ended_at) > LATE_OUTPUT_S
