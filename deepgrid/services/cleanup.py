"""Deletes old data: definitions of jobs that are over, unused uploads, definitions without an owner, old logs, notices,
nonces and revocations.

The chain says which jobs use a definition, not the requests: a job may wait for days before a provider
requests its definition.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select, tuple_
from sqlalchemy.exc import SQLAlchemyError

from deepgrid.errors import GridError
from deepgrid.lifecycle.job import Job
from deepgrid.services.anonymous import forget_unowned
from deepgrid.services.context import Context
from deepgrid.services.database import (
    Definition,
    Log,
    LogChunk,
    NoticeRecord,
    ReleaseRecord,
    RevokedSession,
    Use,
    UsedNonce,
)
from deepgrid.services.new_jobs import PAGE, read_new_jobs
from deepgrid.services.session_keys import CLOCK_SLACK_S

DAY_S = 24 * 3600

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Retention:
    """How long data is kept, in seconds.

    `unused_s`: uploads without a job. `cold_s`: definitions after all their jobs are over. `log_s`: logs and notices.
    """

    unused_s: int = DAY_S
    cold_s: int = 300
    log_s: int = 30 * DAY_S


async def clean_up_for_ever(context: Context, retention: Retention, every_s: float) -> None:
    """Clean up every `every_s` seconds. A failed round is retried by the next one."""
    while True:
        try:
            await clean_up(context, retention)
        except GridError as error:
            logger.warning("clean-up failed, trying again in %.0f s: %s", every_s, error.message)
        except SQLAlchemyError as error:
            logger.warning(
                "clean-up failed, trying again in %.0f s: the database failed (%s)", every_s, type(error).__name__
            )
        await asyncio.sleep(every_s)


async def clean_up(context: Context, retention: Retention) -> None:
    """One round. Raises ChainError and SQLAlchemyError."""
    now = context.clock()
    await _forget_old(context, now, retention)
    async with context.reading_jobs:
        await read_new_jobs(context)
    async with context.database.write() as session:  # only now: the new jobs may have named some
        await forget_unowned(session, now - context.anonymous.limits.anonymous_for_s)
    last = ""
    while True:
        async with context.database.read() as session:
            page = select(Definition).where(Definition.sealed.is_not(None), Definition.definition_hash > last)
            rows = (await session.scalars(page.order_by(Definition.definition_hash).limit(PAGE))).all()
        if not rows:
            return
        await _forget_definitions(context, rows, now, retention)
        last = rows[-1].definition_hash


async def _forget_old(context: Context, now: int, retention: Retention) -> None:
    horizon = now - retention.log_s
    async with context.database.write() as session:
        await session.execute(delete(UsedNonce).where(UsedNonce.expires_at < now))
        await session.execute(delete(RevokedSession).where(RevokedSession.until < now - CLOCK_SLACK_S))
        await session.execute(delete(NoticeRecord).where(NoticeRecord.at < horizon))
        stale = select(Log.job_id, Log.claimed_at).where(Log.updated_at < horizon).limit(PAGE)
        claims = [(job_id, claimed_at) for job_id, claimed_at in await session.execute(stale)]
        await session.execute(delete(LogChunk).where(tuple_(LogChunk.job_id, LogChunk.claimed_at).in_(claims)))
        await session.execute(delete(Log).where(tuple_(Log.job_id, Log.claimed_at).in_(claims)))
        gone = select(Definition.definition_hash).where(Definition.sealed.is_(None), Definition.uploaded_at < horizon)
        await session.execute(delete(ReleaseRecord).where(ReleaseRecord.definition_hash.in_(gone)))
        await session.execute(delete(Use).where(Use.definition_hash.in_(gone)))
        await session.execute(delete(Definition).where(Definition.sealed.is_(None), Definition.uploaded_at < horizon))


async def _forget_definitions(context: Context, rows: Sequence[Definition], now: int, retention: Retention) -> None:
    """Delete the contents whose jobs have all been cold for a while, and rows that no job names."""
    hashes = [row.definition_hash for row in rows]
    async with context.database.read() as session:
        uses = (await session.scalars(select(Use).where(Use.definition_hash.in_(hashes)))).all()
    jobs = await _still_there(context, sorted({use.job_id for use in uses}))
    for row in rows:
        used_by = [
            jobs[use.job_id] for use in uses if use.definition_hash == row.definition_hash and use.job_id in jobs
        ]
        used_by = [job for job in used_by if job.definition.definition_hash == row.definition_hash]
        async with context.database.write() as session:
            current = await session.get(Definition, row.definition_hash, with_for_update=True)
            if current is None or current.uploaded_at != row.uploaded_at:
                continue  # uploaded again meanwhile; the next round decides
            if not used_by:
                if now - current.uploaded_at > retention.unused_s:
                    await session.delete(current)
            elif any(job.status.hot for job in used_by):
                current.cold_seen_at = None
            elif current.cold_seen_at is None:
                current.cold_seen_at = now
            elif now - current.cold_seen_at >= retention.cold_s and now - current.uploaded_at >= retention.cold_s:
                current.sealed = None


async def _still_there(context: Context, job_ids: Sequence[int]) -> dict[int, Job]:
    """The jobs that the chain still has."""
    newest = await context.chain.job_count()
    wanted = [job_id for job_id in job_ids if job_id <= newest]
    return {job.id: job for job in await context.chain.jobs(wanted)} if wanted else {}
