"""Receipts: a job's provider sends one, and its customer, its provider and the operator read it.

The first receipt of a job stays. It is sealed at rest.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Response
from sqlalchemy.exc import IntegrityError

from deepgrid.errors import InputError
from deepgrid.lifecycle.job import Job
from deepgrid.services.context import Context, JobId, Services
from deepgrid.services.core import chain_reads
from deepgrid.services.handlers.authentication import Signed, SignedReader, signed_request
from deepgrid.services.handlers.notices import SCHEDULER_ROLE
from deepgrid.services.receipts import MAX_RECEIPT_BYTES, Contents, differences_from, read_receipt
from deepgrid.services.refusal import Refusal
from deepgrid.services.storage.receipt_table import ReceiptRecord

router = APIRouter()
SignedReceipt = Annotated[Signed, Depends(signed_request(MAX_RECEIPT_BYTES))]


@router.put("/v1/jobs/{job_id}/receipt", status_code=204)
async def store(job_id: JobId, request: SignedReceipt, context: Services) -> None:
    """Store a receipt, signed by its provider, that agrees with the chain. The same one again changes nothing.

    Another receipt of the same job is refused with 409.
    """
    request.look_up()
    contents = _read(context, job_id, request)
    job = await context.job(job_id)
    if job.provider != request.address:
        raise Refusal(403, f"job {job_id} is not a job of {request.address}")
    if job.status.hot:
        raise Refusal(425, f"this service's node does not show the end of job {job_id} yet")
    if found := differences_from(contents, job):
        raise Refusal(422, f"the chain says otherwise than the receipt: {', '.join(found)}")
    async with context.database.write() as session:
        await request.accept(session)
        known = await session.get(ReceiptRecord, job_id)
        if known is None:
            sealed = context.vault.seal(request.body)
            session.add(ReceiptRecord(job_id=job_id, sealed=sealed, stored_at=context.clock()))
            try:
                await session.flush()
            except IntegrityError:  # another process was first
                raise Refusal(503, "another receipt of this job is being stored", retry_after_s=1) from None
        elif context.vault.unseal(known.sealed) != request.body:
            raise Refusal(409, f"there is another receipt of job {job_id} already; the first one is kept")


@router.get("/v1/jobs/{job_id}/receipt")
async def read(job_id: JobId, request: SignedReader, context: Services) -> Response:
    """Return the receipt of a job, as its provider signed it."""
    request.look_up()
    job = await require_part(request, context, job_id)
    await request.accept()
    async with context.database.read() as session:
        known = await session.get(ReceiptRecord, job_id)
    if known is None:
        when = "its provider signs it within minutes" if job.status.cold else "it is not over"
        raise Refusal(404, f"there is no receipt of job {job_id}: {when}")
    return Response(context.vault.unseal(known.sealed), media_type="application/json")


async def require_part(request: Signed, context: Context, job_id: int) -> Job:
    """Return the job. Refuses with 403 unless its customer, its provider or the operator asks."""
    job = await context.job(job_id)
    if request.address not in (job.customer, job.provider):
        with chain_reads():
            if not await context.chain.has_role(SCHEDULER_ROLE, request.address):
                raise Refusal(403, f"{request.address} has no part in job {job_id}")
    return job


def _read(context: Context, job_id: int, request: Signed) -> Contents:
    """Return the contents of the receipt in the request. Refuses what its sender has not signed for this job."""
    try:
        contents = read_receipt(request.body).receipt
    except InputError as error:
        raise Refusal(422, error.message) from None
    domain = context.domain
    if (contents.chain_id, contents.meta_scheduler) != (domain.chain_id, domain.verifying_contract):
        raise Refusal(422, "the receipt is of another grid")
    if (contents.job_id, contents.provider) != (job_id, request.address):
        raise Refusal(403, "the receipt is of another job, or of another provider")
    return contents
