"""Gives definitions without an owner to the customers of the first jobs that name them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.lifecycle.job import Job
from deepgrid.services.storage.database import Definition, UnownedDefinition


async def bind_to_customers(session: AsyncSession, jobs: Sequence[Job], now: int) -> None:
    """Make each definition without an owner that some of `jobs` name a definition of the first one's customer.

    `jobs` are in the order of their ids, and all earlier jobs were given before. The owner never changes.
    """
    hashes = {job.definition.definition_hash for job in jobs}
    wanted = select(UnownedDefinition).where(UnownedDefinition.definition_hash.in_(hashes))
    in_order = wanted.order_by(UnownedDefinition.definition_hash).with_for_update()  # else processes may deadlock
    for row in (await session.scalars(in_order)).all():
        first = next(job for job in jobs if job.definition.definition_hash == row.definition_hash)
        session.add(
            Definition(
                definition_hash=row.definition_hash, uploader=first.customer, sealed=row.sealed,
                enable_logging=row.enable_logging, uploaded_at=now,
            )
        )  # fmt: skip
        await session.delete(row)
    await session.flush()


async def forget_unowned(session: AsyncSession, before: int) -> None:
    """Delete the definitions without an owner that were stored before this time."""
    await session.execute(delete(UnownedDefinition).where(UnownedDefinition.stored_at < before))
