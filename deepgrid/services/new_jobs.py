"""Reads new jobs of the chain in the order of their ids, each at least once, and notes which definitions they name."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.lifecycle.job import Job
from deepgrid.services.context import Context
from deepgrid.services.storage.binding import bind_to_customers
from deepgrid.services.storage.database import Cursor, Definition, Use

PAGE = 200
REORGANISATION = 200  # jobs that each round reads again, because a reorganisation may have changed them


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
            await bind_to_customers(session, jobs, context.clock())
            for definition_hash, job in await _own(session, jobs):
                await session.merge(Use(definition_hash=definition_hash, job_id=job.id))
            await session.merge(Cursor(name="jobs", value=jobs[-1].id))


async def _own(session: AsyncSession, jobs: Sequence[Job]) -> list[tuple[str, Job]]:
    """The jobs that name a definition of their own customer, each with its definition hash."""
    hashes = {job.definition.definition_hash for job in jobs}
    rows = await session.scalars(select(Definition).where(Definition.definition_hash.in_(hashes)))
    uploaders = {row.definition_hash: row.uploader for row in rows}
    wanted = ((job.definition.definition_hash, job) for job in jobs)
    return [(definition_hash, job) for definition_hash, job in wanted if uploaders.get(definition_hash) == job.customer]
