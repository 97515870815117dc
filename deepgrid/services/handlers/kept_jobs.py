"""What the services keep of jobs for their customers: files without secrets, tags, notes, places in sweeps.

Only the customer of a job gets it. A hash is public, so it opens nothing: the uploader is checked as well.
"""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from sqlalchemy import select

from deepgrid.services.context import Context, JobId, Services
from deepgrid.services.handlers.authentication import Signed, SignedReader, signed_request
from deepgrid.services.kept_messages import (
    MAX_MARKS_BODY_BYTES,
    JobMark,
    KeptFile,
    Mark,
    MarkBatch,
    MarkPage,
    SweepId,
)
from deepgrid.services.messages import DefinitionHash
from deepgrid.services.refusal import Refusal
from deepgrid.services.storage.kept_rows import KeptJob, file_of
from deepgrid.workflow.masking import masked_places

PAGE = 500  # jobs that one request looks at
MOST_ANSWER_CHARS = 1024 * 1024

router = APIRouter()
SignedMarks = Annotated[Signed, Depends(signed_request(MAX_MARKS_BODY_BYTES, "store"))]


@router.get("/v1/jobs/{job_id}/file")
async def read_file(job_id: JobId, request: SignedReader, context: Services) -> KeptFile:
    """Return the file of an own job, with masked secrets."""
    request.look_up()
    job = await context.job(job_id)
    async with context.database.read() as session:
        row = await session.get(KeptJob, job.definition.definition_hash)
    if row is None or not job.customer == row.customer == request.address:
        raise Refusal(404, f"no file of job {job_id} is kept for {request.address}")
    await request.accept()
    definition = file_of(context.vault, row)
    places = masked_places(json.loads(definition))
    return KeptFile(definition=definition, masked=places, mark=_mark_in(context, row))


@router.put("/v1/marks", status_code=204)
async def write_marks(request: SignedMarks, context: Services) -> None:
    """Replace tags, notes and places in sweeps of own jobs: all or none."""
    batch = MarkBatch.model_validate_json(request.body)
    request.look_up()
    hashes = [one.definition_hash for one in batch.marks]
    own = select(KeptJob).where(KeptJob.definition_hash.in_(hashes), KeptJob.customer == request.address)
    async with context.database.read() as session:
        known = {row.definition_hash for row in await session.scalars(own)}
    _require_known(hashes, known)
    async with context.database.write() as session:
        await request.accept(session)
        rows = {row.definition_hash: row for row in await session.scalars(own.with_for_update())}
        _require_known(hashes, set(rows))
        for one in batch.marks:
            row = rows[one.definition_hash]
            mark = Mark(tags=one.tags, note=one.note, sweep=one.sweep)
            sealed = None if mark == Mark() else context.vault.seal(mark.model_dump_json().encode())
            row.sealed_mark, row.size = sealed, len(row.sealed) + len(sealed or b"")
            row.sweep = one.sweep.id if one.sweep else None


@router.get("/v1/marks")
async def read_marks(
    request: SignedReader,
    context: Services,
    sweep: SweepId | None = None,
    tag: Annotated[list[str] | None, Query(max_length=16)] = None,
    after: DefinitionHash | None = None,
) -> MarkPage:
    """Return the marks of the signer's jobs, a page at a time, in the order of their hashes. Refuses with 404 without.

    `tag` is `NAME=VALUE`, or `NAME` for any value; all must match.
    """
    request.look_up()
    wanted = select(KeptJob).where(KeptJob.customer == request.address, KeptJob.sealed_mark.is_not(None))
    if sweep is not None:
        wanted = wanted.where(KeptJob.sweep == sweep)
    if after is not None:
        wanted = wanted.where(KeptJob.definition_hash > after)
    async with context.database.read() as session:
        rows = (await session.scalars(wanted.order_by(KeptJob.definition_hash).limit(PAGE))).all()
    if not rows and after is None:
        raise Refusal(404, f"nothing is noted on jobs of {request.address}" + (" in this sweep" if sweep else ""))
    await request.accept()
    found, size = list[JobMark](), 0
    for row in rows:
        one = _mark_of(context, row)
        if all(_has(one.tags, text) for text in tag or ()):
            found.append(one)
            size += len(one.model_dump_json())
        if size > MOST_ANSWER_CHARS:
            return MarkPage(marks=found, after=row.definition_hash)
    return MarkPage(marks=found, after=rows[-1].definition_hash if len(rows) == PAGE else None)


def _mark_in(context: Context, row: KeptJob) -> Mark:
    return Mark.model_validate_json(context.vault.unseal(row.sealed_mark)) if row.sealed_mark else Mark()


def _mark_of(context: Context, row: KeptJob) -> JobMark:
    mark = _mark_in(context, row)
    return JobMark(definition_hash=row.definition_hash, tags=mark.tags, note=mark.note, sweep=mark.sweep)


def _require_known(hashes: list[str], known: set[str]) -> None:
    if unknown := next((one for one in hashes if one not in known), None):
        raise Refusal(404, f"you have uploaded no definition {unknown[:12]}")


def _has(tags: dict[str, str], wanted: str) -> bool:
    name, equals, value = wanted.partition("=")
    return name in tags and (not equals or tags[name] == value)
