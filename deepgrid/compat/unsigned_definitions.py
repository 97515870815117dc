"""Stores definitions that no customer signed, with modules fetched from the hosts that the operator lists."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.compat.compat_context import CompatContext, CompatLimits, CompatSettings
from deepgrid.compat.listed_hosts import ListedHosts
from deepgrid.lifecycle.definition_hash import SALT_BYTES
from deepgrid.modules import ModuleLimits, resolve
from deepgrid.services.refusal import Refusal
from deepgrid.services.storage.database import UnownedDefinition
from deepgrid.workflow import LoadedWorkflow, canonical, from_canonical, hash_definition

LIMITS = ModuleLimits(
    uses=20, depth=4, within_s=20.0, fetch_within_s=10.0, repository_bytes=16 * 1024**2,
    git_memory_bytes=1024**3, template_within_s=5.0, template_cpu_s=2, template_memory_bytes=256 * 1024**2,
)  # fmt: skip
FIELDS = (b'"use":', b'"if":')  # in JSON, no text holds these: its quotes are escaped
LATER = "try again later, or use a client that signs its uploads, such as `dps`"


async def resolve_uses(context: CompatContext, source: str, content: bytes) -> bytes:
    """Check the conditions of a job in canonical form, and replace each `use` by the steps of its module.

    A job that has neither is not parsed. Raises InputError with one line per fault, each with the path of its field. It
    is transient if the only faults are repositories that did not answer. Refuses with 429 while too many jobs of this
    source address wait for their modules.
    """
    if not any(name in content for name in FIELDS):
        return content
    async with context.fetches.turn(source):
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(context.fetch_threads, _with_modules, content, context.settings)


def _with_modules(content: bytes, settings: CompatSettings) -> bytes:
    """Return the job with its modules. Nothing that was fetched is kept."""
    job = from_canonical(content)
    with tempfile.TemporaryDirectory(prefix="deepgrid-modules-") as folder:
        loaded = LoadedWorkflow(job, source_text="")
        return canonical(resolve(loaded, cache=Path(folder), limits=LIMITS, reach=ListedHosts(settings)).model)


async def store_anonymous(context: CompatContext, source: str, content: bytes) -> str:
    """Store a job that came without a signature, for no owner. Returns its definition hash.

    The first job on chain that names the hash decides whose definition it is. The hash contains 32 random bytes, so no
    job can name it before this call returns. Modules are fetched here.

    Refuses with 429 above a limit, and with 503 when the machine is too busy. Raises InputError if the job, its script
    or a module has faults, one per line.
    """
    limits, services = context.limits, context.services
    context.submissions.require(source)
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
