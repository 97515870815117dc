"""Deletes old data: definitions of jobs that are over, unused uploads, definitions without an owner, old logs, notices,
kept files and marks of jobs, nonces and revocations.

The chain says which jobs use a definition, not the requests: a job may wait for days before a provider
requests its definition.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Delete, Update, delete, select, tuple_, update
from sqlalchemy.exc import SQLAlchemyError

from deepgrid.errors import GridError
from deepgrid.lifecycle.job import Job
from deepgrid.services.context import Context
from deepgrid.services.files.old_bundles import clean_up_files
from deepgrid.services.new_jobs import PAGE, forget_unowned, read_new_jobs
from deepgrid.services.signing.session_keys import CLOCK_SLACK_S
from deepgrid.services.storage.database import (
    Definition,
    Log,
    LogChunk,
    NoticeRecord,
    ReleaseRecord,
    RevokedSession,
    Use,
    UsedNonce,
)
from deepgrid.services.storage.kept_rows import forget_old, forget_unused, note_end
from deepgrid.services.storage.use_table import JobUseRecord

DAY_S = 24 * 3600
ROW = tuple_(Definition.definition_hash, Definition.uploaded_at)
Row = tuple[str, int]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Retention:
    """How long data is kept, in seconds."""

    unused_s: int = DAY_S  # uploads without a job
    unowned_s: int = 3600  # definitions without a signature, likewise
    cold_s: int = 300  # definitions after all their jobs are over
    log_s: int = 30 * DAY_S  # logs, notices and samples of use; files, tags and notes of jobs, from their end on


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
        except Exception:  # a bug must not end the clean-up for good
            logger.exception("clean-up failed: unexpected error, trying again in %.0f s", every_s)
        await asyncio.sleep(every_s)


async def clean_up(context: Context, retention: Retention) -> None:
    """Run one round. Raises ChainError and SQLAlchemyError."""
    now = context.clock()
    await _forget_old(context, now, retention)
    async with context.reading_jobs:
        await read_new_jobs(context)
    async with context.database.write() as session:  # only now: the new jobs may have named some
        await forget_unowned(session, now - retention.unowned_s)
    await _clean_up_definitions(context, now, retention)
    if context.files is not None:  # last: its store may be slow
        await clean_up_files(context.files)


async def _clean_up_definitions(context: Context, now: int, retention: Retention) -> None:
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
        await session.execute(delete(JobUseRecord).where(JobUseRecord.updated_at < horizon))
        stale = select(Log.job_id, Log.claimed_at).where(Log.updated_at < horizon).limit(PAGE)
        claims = [(job_id, claimed_at) for job_id, claimed_at in await session.execute(stale)]
        await session.execute(delete(LogChunk).where(tuple_(LogChunk.job_id, LogChunk.claimed_at).in_(claims)))
        await session.execute(delete(Log).where(tuple_(Log.job_id, Log.claimed_at).in_(claims)))
        gone = select(Definition.definition_hash).where(Definition.sealed.is_(None), Definition.uploaded_at < horizon)
        await session.execute(delete(ReleaseRecord).where(ReleaseRecord.definition_hash.in_(gone)))
        await session.execute(delete(Use).where(Use.definition_hash.in_(gone)))
        await session.execute(delete(Definition).where(Definition.sealed.is_(None), Definition.uploaded_at < horizon))
        await forget_old(session, horizon)


async def _forget_definitions(context: Context, rows: Sequence[Definition], now: int, retention: Retention) -> None:
    """Delete the contents whose jobs have all been cold for a while, and rows that no job names.

    One statement per kind of change. A definition that was uploaded again meanwhile is left to the next round.
    """
    used = await _uses(context, [row.definition_hash for row in rows])
    unused, hot, cold, over = list[Row](), list[Row](), list[Row](), list[Row]()
    for row in rows:
        jobs = used.get(row.definition_hash, [])
        age_s, key = now - row.uploaded_at, (row.definition_hash, row.uploaded_at)
        if not jobs:
            if age_s > retention.unused_s:
                unused.append(key)
        elif any(job.status.hot for job in jobs):
            if row.cold_seen_at is not None:
                hot.append(key)
        elif row.cold_seen_at is None:
            cold.append(key)
        elif now - row.cold_seen_at >= retention.cold_s and age_s >= retention.cold_s:
            over.append(key)
    changes: list[tuple[Update | Delete, list[Row]]] = [
        (delete(Definition), unused),
        (update(Definition).values(cold_seen_at=None), hot),
        (update(Definition).values(cold_seen_at=now), cold),
        (update(Definition).values(sealed=None), over),
    ]
    if any(keys for _, keys in changes):
        async with context.database.write() as session:
            for change, keys in changes:
                if keys:
                    await session.execute(change.where(ROW.in_(keys)))
            await forget_unused(session, [definition_hash for definition_hash, _ in unused])
            await note_end(session, [definition_hash for definition_hash, _ in over], now)


async def _uses(context: Context, hashes: Sequence[str]) -> dict[str, list[Job]]:
    async with context.database.read() as session:
        uses = (await session.scalars(select(Use).where(Use.definition_hash.in_(hashes)))).all()
    jobs = await _still_there(context, sorted({use.job_id for use in uses}))
    found = defaultdict[str, list[Job]](list)
    for use in uses:
        job = jobs.get(use.job_id)
        if job is not None and job.definition.definition_hash == use.definition_hash:
            found[use.definition_hash].append(job)
    return found


async def _still_there(context: Context, job_ids: Sequence[int]) -> dict[int, Job]:
    newest = await context.chain.job_count()
    wanted = [job_id for job_id in job_ids if job_id <= newest]
    return {job.id: job for job in await context.chain.jobs(wanted)} if wanted else {}
