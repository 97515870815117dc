"""What running jobs use: their provider sends samples, and their customer reads them. No money depends on them.

A job keeps a bounded number of samples, sealed at rest. The samples that are closest together are merged.
"""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter

from deepgrid.billing.use_samples import UseSample, with_sample
from deepgrid.lifecycle.job import Job
from deepgrid.services.context import Context, JobId, Services
from deepgrid.services.handlers.authentication import SignedReader, SignedUses
from deepgrid.services.handlers.job_receipts import require_part
from deepgrid.services.messages import JobUse, UseBatch, UseFigures, UseOverTime
from deepgrid.services.refusal import Refusal
from deepgrid.services.storage.missing_rows import add_missing
from deepgrid.services.storage.use_table import JobUseRecord

router = APIRouter()


@router.post("/v1/uses", status_code=204)
async def add(request: SignedUses, context: Services) -> None:
    """Add a sample to each of these jobs that are running claims of the sender. Refuses with 403 if none is."""
    uses = {use.job_id: use for use in UseBatch.model_validate_json(request.body).uses}
    request.look_up()
    jobs = await context.jobs(list(uses))
    own = [use for use, job in zip(uses.values(), jobs, strict=True) if _is_claim_of(job, request.address, use)]
    if not own:
        raise Refusal(403, f"none of these jobs is a running claim of {request.address}")
    async with context.database.write() as session:
        await request.accept(session)
        now, new = context.clock(), []
        for use in own:
            row = await session.get(JobUseRecord, use.job_id)
            sealed = context.vault.seal(_with(context, row, use).model_dump_json(exclude_none=True).encode())
            if row is None:
                new.append({"job_id": use.job_id, "sealed": sealed, "updated_at": now})
            else:
                row.sealed, row.updated_at = sealed, now
        await add_missing(session, JobUseRecord, new)


@router.get("/v1/jobs/{job_id}/use")
async def read(job_id: JobId, request: SignedReader, context: Services) -> UseOverTime:
    """Return the samples of a job's present claim, if there are any."""
    request.look_up()
    job = await require_part(request, context, job_id)
    await request.accept()
    async with context.database.read() as session:
        found = _over_time(context, await session.get(JobUseRecord, job_id))
    return found if found and found.claimed_at == job.claimed_at else UseOverTime(claimed_at=job.claimed_at, samples=[])


def _is_claim_of(job: Job, address: str, use: JobUse) -> bool:
    return job.provider == address and job.claimed_at == use.claimed_at and job.status.hot


def _with(context: Context, row: JobUseRecord | None, use: JobUse) -> UseOverTime:
    known = _over_time(context, row)
    samples = known.samples if known is not None and known.claimed_at == use.claimed_at else []
    sample = UseSample(**use.model_dump(exclude={"job_id", "claimed_at"}))
    joined = with_sample([UseSample(**one.model_dump()) for one in samples], sample)
    return UseOverTime(claimed_at=use.claimed_at, samples=[UseFigures(**asdict(one)) for one in joined])


def _over_time(context: Context, row: JobUseRecord | None) -> UseOverTime | None:
    return None if row is None else UseOverTime.model_validate_json(context.vault.unseal(row.sealed))
