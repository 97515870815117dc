"""Reads new jobs of the chain in the order of their ids, each at least once, and notes which definitions they name."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.lifecycle.definition_hash import SALT_BYTES
from deepgrid.lifecycle.job import Job
from deepgrid.services.context import Context
from deepgrid.services.storage.database import Cursor, Definition, UnownedDefinition, Use
from deepgrid.services.storage.kept_rows import keep_job
from deepgrid.services.storage.missing_rows import add_missing
from deepgrid.services.storage.vault import Vault

PAGE = 200
REORGANISATION = 200  # jobs that each round reads again, because a reorganisation may have changed them


async def bind_to_customers(session: AsyncSession, vault: Vault, jobs: Sequence[Job], now: int) -> None:
    """Make each definition without an owner that some of `jobs` name a definition of the first one's customer.

    `jobs` are in the order of their ids, and all earlier jobs were given before. The owner never changes.
    """
    hashes = {job.definition.definition_hash for job in jobs}
    wanted = select(UnownedDefinition).where(UnownedDefinition.definition_hash.in_(hashes))
    in_order = wanted.order_by(UnownedDefinition.definition_hash).with_for_update()  # else processes may deadlock
    for row in (await session.scalars(in_order)).all():
        first = next(job for job in jobs if job.definition.definition_hash == row.definition_hash)
        owned = Definition(definition_hash=row.definition_hash, uploader=first.customer, uploaded_at=now)
        owned.sealed, owned.enable_logging = row.sealed, row.enable_logging
        session.add(owned)
        content = vault.unseal(row.sealed)[SALT_BYTES:]
        await keep_job(session, vault, row.definition_hash, first.customer, content, now)
        await session.delete(row)
    await session.flush()


async def forget_unowned(session: AsyncSession, before: int) -> None:
    """Delete the definitions without an owner that were stored before this time."""
    await session.execute(delete(UnownedDefinition).where(UnownedDefinition.stored_at < before))


async def read_new_jobs(context: Context) -> None:
    """Read all jobs after the cursor, which all processes share.

    Binds definitions without an owner, and records which jobs name a definition of their own customer. Call it with the
    lock `context.reading_jobs`. Raises ChainError, and NotFound while the chain is reorganised.
    """
    newest = await context.chain.job_count()
    async with context.database.read() as session:
        cursor = await session.get(Cursor, "jobs")
    first = max(1, min(cursor.value if cursor else 0, newest) - REORGANISATION + 1)
    for start in range(first, newest + 1, PAGE):
        jobs = await context.chain.jobs(range(start, min(start + PAGE, newest + 1)))
        async with context.database.write() as session:
            await bind_to_customers(session, context.vault, jobs, context.clock())
            own = await _own(session, jobs)
            await add_missing(session, Use, [{"definition_hash": name, "job_id": job.id} for name, job in own])
            await add_missing(session, Cursor, [{"name": "jobs", "value": 0}])
            await session.merge(Cursor(name="jobs", value=jobs[-1].id))


async def _own(session: AsyncSession, jobs: Sequence[Job]) -> list[tuple[str, Job]]:
    """Return the jobs that name a definition of their own customer, each with its definition hash."""
    hashes = {job.definition.definition_hash for job in jobs}
    rows = await session.scalars(select(Definition).where(Definition.definition_hash.in_(hashes)))
    uploaders = {row.definition_hash: row.uploader for row in rows}
    wanted = ((job.definition.definition_hash, job) for job in jobs)
    return [(definition_hash, job) for definition_hash, job in wanted if uploaders.get(definition_hash) == job.customer]
