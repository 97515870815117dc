"""The log service: a job's provider appends by offset, its customer reads by offset.

A log belongs to one claim of a job, so outputs of different providers never mix.
"""

from __future__ import annotations

import contextlib
from typing import Annotated

from fastapi import APIRouter, Query, Response
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.lifecycle.job import Job
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.authentication import SignedChunk, SignedReader
from deepgrid.services.context import Context, JobId, Services
from deepgrid.services.database import Log, LogChunk
from deepgrid.services.following import Excerpt, excerpt_now, excerpt_of, require_customer, wait_for_more
from deepgrid.services.messages import MAX_WAIT_S, Appended
from deepgrid.services.refusal import Refusal

router = APIRouter()
Offset = Annotated[int, Query(ge=0, lt=2**53)]
OffsetOrTail = Annotated[int, Query(gt=-(2**53), lt=2**53)]


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
    context.hub.announce(job_id)
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
    if not wait:
        job = await context.job(job_id)
        require_customer(job, request.address)
        excerpt = await excerpt_now(context, job, offset)
        await request.accept()
        return _answer(excerpt)
    async with context.hub.join(job_id, request.address) as feed:
        excerpt = await excerpt_of(feed, offset)
        await request.accept()
        if not (excerpt.data or excerpt.final):
            with context.hub.counted(request.source, job_id), context.admission.running.lend(request.source):
                excerpt = await wait_for_more(feed, request.address, offset, wait)
            await request.require_session()  # it may have ended while the reader waited
    return _answer(excerpt)


def _answer(excerpt: Excerpt) -> Response:
    return Response(excerpt.data, media_type="application/octet-stream", headers=excerpt.headers())


async def _append(context: Context, session: AsyncSession, job: Job, offset: int, data: bytes, final: bool) -> int:
    """Store the new part of `data`. Returns the log's size."""
    log = await _log_of(session, job, context.clock())
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


async def _log_of(session: AsyncSession, job: Job, now: int) -> Log:
    """The locked row of the log. The first append makes it; two processes may try that at once."""
    key = (job.id, job.claimed_at)
    log = await session.get(Log, key, with_for_update=True)
    if log is None:
        with contextlib.suppress(IntegrityError):  # another process was first
            async with session.begin_nested():
                session.add(Log(job_id=job.id, claimed_at=job.claimed_at, size=0, final=False, updated_at=now))
        log = await session.get_one(Log, key, with_for_update=True)
    return log
