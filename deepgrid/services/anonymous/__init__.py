"""Stand-in with the interface of the anonymous store."""

from __future__ import annotations

import secrets

from deepgrid.services.context import Context
from deepgrid.services.database import Definition as Row
from deepgrid.workflow import Definition, canonical, hash_definition
from deepgrid.workflow.canonical import SALT_BYTES


async def store_anonymous(context: Context, source: str, job: Definition) -> str:
    """Store a job that came without a signature. Returns its hash. Raises Refusal, InputError and ServiceError."""
    salt, content = secrets.token_bytes(SALT_BYTES), canonical(job)
    verdict = await context.checks.check(source, content)
    row = Row(definition_hash=hash_definition(salt, content), uploader="", enable_logging=verdict.enable_logging)
    row.sealed, row.uploaded_at = context.vault.seal(salt + content), context.clock()
    async with context.database.write() as session:
        session.add(row)
    return row.definition_hash
