"""The Job Definition service: stores definitions, and releases each to the provider of its job.

A release needs three facts on chain. The job is scheduled or running at the provider. The job names the definition. The
job's customer uploaded the definition, or is the customer of the first job that named it.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Annotated

import ecies
from fastapi import APIRouter, Path, Response
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.errors import ChainError, ConfigurationError, InputError, NotFound
from deepgrid.lifecycle.job import Job as ChainJob
from deepgrid.lifecycle.states import JobStatus
from deepgrid.sbatch.render import needs_grid_files
from deepgrid.services.context import Context, JobId, Services
from deepgrid.services.core import chain_is_silent, chain_reads
from deepgrid.services.files.bundles import NO_INPUT
from deepgrid.services.files.tables import OutputUse
from deepgrid.services.handlers.authentication import SignedReader, SignedSmall, SignedUpload
from deepgrid.services.messages import DefinitionHash, Release, Released, ReleaseRequest, Releases, Upload
from deepgrid.services.new_jobs import read_new_jobs
from deepgrid.services.refusal import Refusal
from deepgrid.services.storage.database import Definition, ReleaseRecord, UnownedDefinition, Use
from deepgrid.services.storage.kept_rows import keep_job
from deepgrid.services.storage.missing_rows import add_missing
from deepgrid.workflow import Definition as OutputFile
from deepgrid.workflow import from_canonical, hash_definition

MOST_RELEASES = 1000  # in one answer
MOST_RELEASES_OF_JOB = 20  # recorded per provider
BIND_WITHIN_S = 15.0

router = APIRouter()
HashInPath = Annotated[DefinitionHash, Path(alias="name")]


@router.put("/v1/definitions/{name}", status_code=204)
async def upload(definition_hash: HashInPath, request: SignedUpload, context: Services) -> Response:
    """Store a definition under its hash. A repeated upload changes nothing."""
    message = Upload.model_validate_json(request.body)
    content = message.definition.encode()
    salt = bytes.fromhex(message.salt)
    if hash_definition(salt, content) != definition_hash:
        raise Refusal(422, "the hash in the path does not match the salt and the definition")
    request.look_up()
    await require_credits(context, request.address)
    await request.trust()
    verdict = await context.checks.check(request.address, content)
    bundle, earlier_job = await _input_files(context, request.address, content)
    async with context.database.write() as session:
        await request.accept(session)
        await _store(context, session, definition_hash, request.address, salt + content, verdict.enable_logging)
        await keep_job(session, context.vault, definition_hash, request.address, content, context.clock())
        if bundle and context.files:
            await context.files.hold(session, definition_hash, bundle, request.address)
        if earlier_job:
            await add_missing(session, OutputUse, [{"definition_hash": definition_hash, "job_id": earlier_job}])
    return Response(status_code=204)


@router.post("/v1/jobs/{job_id}/definition")
async def release(job_id: JobId, request: SignedSmall, context: Services) -> Released:
    """Release the job's definition to its provider, encrypted to the key in the request."""
    message = ReleaseRequest.model_validate_json(request.body)
    request.look_up()
    job = await job_at(context, job_id, request.address)
    if job.definition.definition_hash != message.definition_hash:
        raise Refusal(403, "the job names another definition")
    row = await owned_definition(context, message.definition_hash)
    if row is None or row.sealed is None or row.uploader != job.customer:
        raise Refusal(404, "the job's customer has no definition under this hash")
    await request.trust()
    answer = _encrypt_for(message.public_key, _stored_upload(context, message.definition_hash, row.sealed))
    async with context.database.write() as session:
        await request.accept(session)
        await _record(session, message.definition_hash, job_id, request.address, context.clock())
        await add_missing(session, Use, [{"definition_hash": message.definition_hash, "job_id": job_id}])
    return Released(sealed=answer.hex())


@router.get("/v1/definitions/{name}/releases")
async def releases(definition_hash: HashInPath, request: SignedReader, context: Services) -> Releases:
    """Return the releases of a definition, for its uploader."""
    async with context.database.read() as session:
        row = await session.get(Definition, definition_hash)
        if row is None or row.uploader != request.address:
            raise Refusal(404, "you have uploaded no definition under this hash")
    await request.accept()
    async with context.database.read() as session:
        wanted = select(ReleaseRecord).where(ReleaseRecord.definition_hash == definition_hash)
        found = (await session.scalars(wanted.order_by(ReleaseRecord.id).limit(MOST_RELEASES))).all()
    return Releases(releases=[Release(provider=r.provider, job_id=r.job_id, at=r.at) for r in found])


async def _input_files(context: Context, uploader: str, content: bytes) -> tuple[str | None, int | None]:
    """Return the bundle or the job that a definition names as its input. Refuses a job of another customer."""
    job = await asyncio.to_thread(from_canonical, content)
    source = job.input
    if context.files is None:
        if needs_grid_files(job):
            raise Refusal(422, "this grid keeps no files; use http or s3 for input and output")
        return None, None
    if source is not None and source.job:
        earlier = await context.job(source.job)
        if earlier.customer != uploader:
            raise Refusal(422, f"input: job {source.job} is not a job of yours")
        if earlier.definition.has_private_files:
            raise Refusal(422, f"input: the files of job {source.job} are private; download them, and send them again")
        if earlier.status.cold:  # otherwise the job may still leave some
            await context.files.output_of(earlier)
        return None, source.job
    if source is None or source.grid is None:
        return None, None
    if not source.grid.files:
        raise Refusal(422, NO_INPUT)
    return source.grid.files, None


async def require_credits(context: Context, address: str) -> None:
    """Refuse signers who cannot pay for a job, because storage and checks cost the operator."""
    least = max(1, await context.minimum_wei())
    with chain_reads():
        if await context.chain.balance(address) < least:
            raise Refusal(403, f"{address} holds fewer credits than a job has to lock")


async def _store(
    context: Context, session: AsyncSession, definition_hash: str, uploader: str, content: bytes, enable_logging: bool
) -> None:
    if await session.get(UnownedDefinition, definition_hash) is not None:
        raise Refusal(403, "this definition was submitted without a signature")
    row = await session.get(Definition, definition_hash, with_for_update=True)
    if row is not None and row.uploader != uploader:
        raise Refusal(403, "another customer uploaded this definition")
    if row is None or row.sealed is None:
        own = select(func.count()).where(Definition.uploader == uploader, Definition.sealed.is_not(None))
        most = context.admission.limits.definitions_per_customer
        if (await session.scalar(own) or 0) >= most:
            raise Refusal(429, f"you have {most} definitions stored already")
    if row is None:
        row = Definition(definition_hash=definition_hash, uploader=uploader, enable_logging=enable_logging)
        session.add(row)
    row.sealed, row.uploaded_at, row.cold_seen_at = context.vault.seal(content), context.clock(), None


async def owned_definition(context: Context, definition_hash: str) -> Definition | None:
    """Return the definition, if it has an owner. The customer of the first job that names an unowned one gets it.

    Refuses with 425 or 503 if that job cannot be found now.
    """
    if await _is_unowned(context, definition_hash):
        try:
            async with asyncio.timeout(BIND_WITHIN_S), context.reading_jobs:
                if await _is_unowned(context, definition_hash):
                    with contextlib.suppress(IntegrityError):  # another process recorded the same jobs at the same time
                        await read_new_jobs(context)
        except (ChainError, NotFound, TimeoutError):
            raise chain_is_silent() from None
        if await _is_unowned(context, definition_hash):
            raise Refusal(425, "the jobs that name this definition are not all known to this service's node")
    async with context.database.read() as session:
        return await session.get(Definition, definition_hash)


async def _is_unowned(context: Context, definition_hash: str) -> bool:
    async with context.database.read() as session:
        return await session.get(UnownedDefinition, definition_hash) is not None


async def _record(session: AsyncSession, definition_hash: str, job_id: int, provider: str, now: int) -> None:
    """Record a release. Beyond a limit per job and provider, only the time of the last record is updated."""
    record = {"definition_hash": definition_hash, "job_id": job_id, "provider": provider}
    known = (await session.scalars(select(ReleaseRecord).filter_by(**record).order_by(ReleaseRecord.id))).all()
    if len(known) < MOST_RELEASES_OF_JOB:
        session.add(ReleaseRecord(**record, at=now))
    else:
        known[-1].at = now


async def job_at(context: Context, job_id: int, provider: str) -> ChainJob:
    """Return the job, if it is scheduled or running at this provider.

    A claim that this service's node has not seen yet is refused with 425, so that the provider retries.
    """
    too_early = Refusal(425, f"job {job_id} is not claimed, as far as this service's node knows")
    try:
        with chain_reads():
            job = await context.chain.job(job_id)
    except NotFound:
        raise too_early from None
    if job.status in (JobStatus.PENDING, JobStatus.META_SCHEDULED):
        raise too_early
    if job.status.cold or job.provider != provider:
        raise Refusal(403, f"job {job_id} is not scheduled or running at {provider}")
    return job


def _stored_upload(context: Context, definition_hash: str, sealed: bytes) -> bytes:
    """Return the stored upload as a message, after checking that it still has this hash."""
    stored = context.vault.unseal(sealed)
    salt, content = stored[:32], stored[32:]
    if hash_definition(salt, content) != definition_hash:
        raise ConfigurationError("The database holds a definition that differs from the uploaded one.")
    return Upload(salt=salt.hex(), definition=content.decode()).model_dump_json().encode()


def stored_definition(context: Context, definition_hash: str, sealed: bytes) -> OutputFile:
    """Return the definition of a stored upload, after the same check."""
    upload = Upload.model_validate_json(_stored_upload(context, definition_hash, sealed))
    return from_canonical(upload.definition.encode())


def _encrypt_for(public_key: str, content: bytes) -> bytes:
    try:
        return ecies.encrypt(public_key, content)
    except ValueError:
        raise InputError("the public key is not a point of the curve") from None
