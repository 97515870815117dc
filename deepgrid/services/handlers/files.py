"""Files of customers, by signed requests: who may send, read, share and delete them, and which addresses a job gets."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from sqlalchemy import func, select

from deepgrid.lifecycle.job import Job
from deepgrid.services.context import Context, JobId, Services
from deepgrid.services.files.bundles import GET_FOR_S, JOB_FOR_S, MOST_LINKS, PUT_FOR_S, Bundles
from deepgrid.services.files.file_messages import (
    Announced,
    Announcement,
    JobFiles,
    Link,
    Links,
    LinkWish,
    Transfers,
    Usage,
)
from deepgrid.services.files.old_bundles import delete_earlier, make_room
from deepgrid.services.files.tables import USED, Bundle, BundleLink
from deepgrid.services.handlers.authentication import SignedReader, SignedSmall, SignedStore
from deepgrid.services.handlers.definitions import job_at, owned_definition, require_credits, stored_definition
from deepgrid.services.refusal import Refusal

router = APIRouter()


def file_room(context: Services) -> Bundles:
    """Dependency: the bundles. Refuses with 404 if this grid keeps no files."""
    if context.files is None:
        raise Refusal(404, "this grid keeps no files")
    return context.files


Room = Annotated[Bundles, Depends(file_room)]


@router.post("/v1/files")
async def announce(request: SignedStore, context: Services, room: Room) -> Announced:
    """Reserve room for the input files of a job."""
    wanted = Announcement.model_validate_json(request.body)
    request.look_up()
    await require_credits(context, request.address)
    await request.accept()
    await make_room(room, request.address, wanted.size, digest=wanted.digest)
    async with context.database.write() as session:
        bundle = await room.announce(session, request.address, wanted.digest, wanted.size, wanted.files)
        if (bundle.size, bundle.files) != (wanted.size, wanted.files):
            raise Refusal(409, "these files were announced with another size")
    return Announced(
        id=bundle.id, address=room.address("put", bundle.id, PUT_FOR_S), finished=bundle.finished_at is not None
    )


@router.get("/v1/files")
async def usage(request: SignedReader, context: Services, room: Room) -> Usage:
    """Return how much room the signer's files take."""
    await request.accept()
    async with context.database.read() as session:
        used = await session.scalar(select(USED).where(Bundle.owner == request.address))
    terms = room.terms(request.address)
    return Usage(
        used=int(used or 0),
        quota=terms.quota_bytes,
        bundle=terms.bundle_bytes,
        file=terms.file_bytes,
        files=terms.files,
        keep_s=terms.keep_s,
    )


@router.get("/v1/jobs/{job_id}/files")
async def files_of_job(job_id: JobId, request: SignedReader, context: Services, room: Room) -> JobFiles:
    """Return where the customer of a job can read its output."""
    job = await _job_of(context, job_id, request.address)
    await request.accept()
    bundle = await room.output_of(job)
    until = context.clock() + GET_FOR_S
    return JobFiles(
        address=room.address("get", bundle.id, GET_FOR_S),
        until=until,
        size=bundle.size,
        files=bundle.files,
        finished_at=bundle.finished_at or 0,
        kept_until=bundle.used_at + room.terms(bundle.owner).keep_s,
    )


@router.delete("/v1/jobs/{job_id}/files", status_code=204)
async def delete_files(job_id: JobId, request: SignedSmall, context: Services, room: Room) -> Response:
    """Delete the output of a job, and all links to it."""
    job = await _job_of(context, job_id, request.address)
    await request.accept()
    await room.delete_of(job)
    return Response(status_code=204)


@router.post("/v1/jobs/{job_id}/transfers")
async def transfers(job_id: JobId, request: SignedSmall, context: Services, room: Room) -> Transfers:
    """Give the provider of a job the addresses for its script. They work as long as this claim is open."""
    request.look_up()
    job = await job_at(context, job_id, request.address)
    definition_hash = job.definition.definition_hash
    row = await owned_definition(context, definition_hash)
    if row is None or row.sealed is None or row.uploader != job.customer:
        raise Refusal(404, "the job's customer has no definition under its hash")
    definition = stored_definition(context, definition_hash, row.sealed)
    source = None
    if definition.input and definition.input.grid and definition.input.grid.files:
        source = await room.require(definition.input.grid.files, finished=True)
    elif definition.input and definition.input.job:
        source = await room.output_of(await _job_of(context, definition.input.job, job.customer))
    if source is not None and source.owner != job.customer:
        raise Refusal(404, "the grid has these files no more, or not yet")
    async with context.database.write() as session:
        await request.accept(session)
        output = None
        if definition.output and definition.output.grid:
            output = (await room.of_claim(session, job.customer, job_id, job.claimed_at)).id
    await delete_earlier(room, job)
    if source is not None:
        await room.touch(source.id)
    return Transfers(
        input=source and room.address("in", source.id, JOB_FOR_S, job_id, job.claimed_at),
        output=output and room.address("out", output, JOB_FOR_S, job_id, job.claimed_at),
    )


@router.post("/v1/jobs/{job_id}/links")
async def share(job_id: JobId, request: SignedStore, context: Services, room: Room) -> Link:
    """Make a link to the output of the signer's job. A session key needs `read`, too. Its revocation ends it."""
    if request.session is not None and not request.session.has("read"):
        raise Refusal(403, "the session key has no right to read, so it shares nothing")
    wish = LinkWish.model_validate_json(request.body)
    job = await _job_of(context, job_id, request.address)
    if job.definition.has_private_files:
        raise Refusal(422, f"the files of job {job_id} are private, so no link can show them to others")
    bundle = await room.output_of(job)
    now = context.clock()
    async with context.database.write() as session:
        await request.accept(session)
        count = select(func.count()).where(BundleLink.bundle == bundle.id, BundleLink.until > now)
        count = count.where(BundleLink.revoked_at.is_(None))
        if (await session.scalar(count) or 0) >= MOST_LINKS:
            raise Refusal(429, f"this job has {MOST_LINKS} links already")
        link = BundleLink(
            bundle=bundle.id, job_id=job_id, made_at=now, until=now + wish.for_s, key_hash=request.key_hash
        )
        session.add(link)
        await session.flush()
        address = room.address("link", bundle.id, wish.for_s, link.id)
    return Link(id=link.id, made_at=now, until=link.until, address=address)


@router.get("/v1/jobs/{job_id}/links")
async def links_of(job_id: JobId, request: SignedReader, context: Services) -> Links:
    """Return the links to the signer's job, without their addresses."""
    await _job_of(context, job_id, request.address)
    await request.accept()
    async with context.database.read() as session:
        wanted = select(BundleLink).where(BundleLink.job_id == job_id).order_by(BundleLink.id)
        rows = (await session.scalars(wanted)).all()
    return Links(links=[Link(id=r.id, made_at=r.made_at, until=r.until, revoked_at=r.revoked_at) for r in rows])


@router.delete("/v1/jobs/{job_id}/links", status_code=204)
async def revoke_links(job_id: JobId, request: SignedStore, context: Services) -> Response:
    """Revoke all links to the signer's job."""
    await _job_of(context, job_id, request.address)
    async with context.database.write() as session:
        await request.accept(session)
        for link in (await session.scalars(select(BundleLink).where(BundleLink.job_id == job_id))).all():
            link.revoked_at = link.revoked_at or context.clock()
    return Response(status_code=204)


async def _job_of(context: Context, job_id: int, signer: str) -> Job:
    """Return a job of this customer. Another customer's job is refused like a job that does not exist."""
    job = await context.job(job_id)
    if job.customer != signer:
        raise Refusal(404, f"there is no job {job_id} of {signer}")
    return job
