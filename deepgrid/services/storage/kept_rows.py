"""What the services keep of a job for its customer: its file without secrets, tags, a note, its place in a sweep.

It is kept as long as the job's log. A definition itself is deleted soon after its jobs are over.
"""

from __future__ import annotations

import zlib

from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from deepgrid.services.storage.database import Definition, Table
from deepgrid.services.storage.vault import Vault
from deepgrid.workflow.masking import mask_secrets

MOST_BYTES_PER_CUSTOMER = 64 * 1024 * 1024  # beyond that, the oldest files are deleted


class KeptJob(Table):
    """What is kept of one job, by the hash of its definition. `touched_at` is its upload, or its end."""

    __tablename__ = "grid_kept_job"
    definition_hash: Mapped[str] = mapped_column(primary_key=True)
    customer: Mapped[str] = mapped_column(index=True)
    sealed: Mapped[bytes]  # the definition in canonical form, masked and compressed
    sealed_mark: Mapped[bytes | None]  # tags, note and place in a sweep
    sweep: Mapped[str | None] = mapped_column(index=True)  # the random id of its sweep
    size: Mapped[int]
    touched_at: Mapped[int] = mapped_column(index=True)


async def keep_job(
    session: AsyncSession, vault: Vault, definition_hash: str, customer: str, content: bytes, now: int
) -> None:
    """Keep the file of a definition for its customer, without its secrets. A repeated call keeps the mark."""
    sealed = vault.seal(zlib.compress(mask_secrets(content)))
    row = await session.get(KeptJob, definition_hash)
    if row is None:
        row = KeptJob(definition_hash=definition_hash, customer=customer, sealed_mark=None, sweep=None)
        session.add(row)
    row.sealed, row.size, row.touched_at = sealed, len(sealed) + len(row.sealed_mark or b""), now


def file_of(vault: Vault, row: KeptJob) -> str:
    """Return the definition of a kept job in canonical form, with masked secrets."""
    return zlib.decompress(vault.unseal(row.sealed)).decode()


async def forget_old(session: AsyncSession, horizon: int) -> None:
    """Delete what was kept before this time, except for jobs that may still run, and the oldest beyond the limit."""
    live = select(Definition.definition_hash).where(Definition.sealed.is_not(None))
    is_over = KeptJob.definition_hash.not_in(live)
    await session.execute(delete(KeptJob).where(KeptJob.touched_at < horizon, is_over))
    total = func.sum(KeptJob.size)
    full = select(KeptJob.customer, total).group_by(KeptJob.customer).having(total > MOST_BYTES_PER_CUSTOMER)
    for customer, size in (await session.execute(full)).all():
        oldest = select(KeptJob.definition_hash, KeptJob.size).where(KeptJob.customer == customer, is_over)
        gone, excess = list[str](), int(size) - MOST_BYTES_PER_CUSTOMER
        for definition_hash, row_size in await session.execute(oldest.order_by(KeptJob.touched_at).limit(500)):
            if excess <= 0:
                break
            gone.append(definition_hash)
            excess -= row_size
        await session.execute(delete(KeptJob).where(KeptJob.definition_hash.in_(gone)))


async def forget_unused(session: AsyncSession, hashes: list[str]) -> None:
    """Delete what is kept of definitions that no job names."""
    stored = select(Definition.definition_hash)  # one that was uploaded again meanwhile is
    await session.execute(
        delete(KeptJob).where(KeptJob.definition_hash.in_(hashes), KeptJob.definition_hash.not_in(stored))
    )


async def note_end(session: AsyncSession, hashes: list[str], now: int) -> None:
    """Let the time for which these jobs are kept begin now, because they are over."""
    await session.execute(update(KeptJob).where(KeptJob.definition_hash.in_(hashes)).values(touched_at=now))
