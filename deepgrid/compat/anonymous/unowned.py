"""Stores definitions that no customer signed."""

from __future__ import annotations

import secrets

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.compat.anonymous.modules_of_strangers import resolve_uses
from deepgrid.compat.compat_context import CompatContext
from deepgrid.compat.settings import CompatLimits
from deepgrid.services.refusal import Refusal
from deepgrid.services.storage.database import UnownedDefinition
from deepgrid.workflow import hash_definition
from deepgrid.workflow.canonical import SALT_BYTES

LATER = "try again later, or use a client that signs its uploads, such as `dps`"


async def store_anonymous(context: CompatContext, source: str, content: bytes) -> str:
    """Store a job that came without a signature, for no owner.

    The first job on chain that names the hash decides whose definition it is. The hash contains 32 random bytes, so no
    job can name it before this call returns.

    Args:
        context: The parts that existing clients share.
        source: Source address of the request: `request.state.source`.
        content: The job in canonical form. Its modules are fetched here.

    Returns:
        The definition hash, 64 hex digits.

    Raises:
        Refusal: 429 above a limit, 503 when the machine is too busy.
        InputError: The job, its script or a module has faults, one per line.
    """
    limits, services = context.limits, context.services
    context.submit(source)
    content = await resolve_uses(context, source, content)
    salt = secrets.token_bytes(SALT_BYTES)
    sealed = services.vault.seal(salt + content)
    async with services.database.read() as session:
        await _require_room(session, limits, source, len(sealed))
    verdict = await context.checks.check(source, content)
    definition_hash = hash_definition(salt, content)
    row = UnownedDefinition(definition_hash=definition_hash, source=source, sealed=sealed, size=len(sealed))
    row.enable_logging, row.stored_at = verdict.enable_logging, services.clock()
    async with services.database.write() as session:
        await _require_room(session, limits, source, len(sealed))
        session.add(row)
    return definition_hash


async def _require_room(session: AsyncSession, limits: CompatLimits, source: str, size: int) -> None:
    """Refuse what would exceed the limits of this source address, or of all together."""
    held = select(func.count(), func.coalesce(func.sum(UnownedDefinition.size), 0))
    number, size_held = (await session.execute(held.where(UnownedDefinition.source == source))).one()
    if number >= limits.definitions_per_address or size_held + size > limits.definition_bytes_per_address:
        raise Refusal(429, f"too many definitions of your address wait for their jobs; {LATER}", retry_after_s=60)
    number, size_held = (await session.execute(held)).one()
    if number >= limits.definitions or size_held + size > limits.definition_bytes:
        raise Refusal(429, f"too many definitions wait for their jobs; {LATER}", retry_after_s=60)
