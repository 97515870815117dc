"""Notices: why a job waits, why a cluster was chosen, why a cluster refused the job. Public, like the chain."""

from __future__ import annotations

from fastapi import APIRouter
from sqlalchemy import delete, select

from deepgrid.errors import ChainError
from deepgrid.lifecycle.job import Job
from deepgrid.services.authentication import SignedSmall
from deepgrid.services.context import Context, JobId, Services, chain_is_silent
from deepgrid.services.database import NoticeRecord
from deepgrid.services.messages import Notice, Notices, NoticeText
from deepgrid.services.refusal import Refusal

SCHEDULER_ROLE = "METASCHEDULER_ROLE"

router = APIRouter()


@router.post("/v1/jobs/{job_id}/notices", status_code=204)
async def post(job_id: JobId, request: SignedSmall, context: Services) -> None:
    """Add a notice, unless it repeats the author's last notice on this job."""
    notice = NoticeText.model_validate_json(request.body)
    request.look_up()
    job = await context.job(job_id)
    if not await _may_speak(context, job, request.address):
        raise Refusal(403, f"{request.address} has no part in job {job_id}")
    async with context.database.write() as session:
        await request.accept(session)
        most = context.admission.limits.notices_per_job
        of_job = select(NoticeRecord).where(NoticeRecord.job_id == job_id)
        standing = (await session.scalars(of_job.order_by(NoticeRecord.id.desc()).limit(most))).all()
        last = next((n for n in standing if n.author == request.address), None)
        if last and (last.kind, last.text) == (notice.kind, notice.text):
            return
        if len(standing) == most:
            old = delete(NoticeRecord).where(NoticeRecord.job_id == job_id, NoticeRecord.id <= standing[-1].id)
            await session.execute(old)
        said = {"author": request.address, "kind": notice.kind, "text": notice.text}
        session.add(NoticeRecord(job_id=job_id, at=context.clock(), **said))


@router.get("/v1/jobs/{job_id}/notices")
async def notices(job_id: JobId, context: Services) -> Notices:
    """All notices on a job, oldest first."""
    async with context.database.read() as session:
        wanted = select(NoticeRecord).where(NoticeRecord.job_id == job_id).order_by(NoticeRecord.id)
        found = (await session.scalars(wanted)).all()
    return Notices(notices=[Notice(kind=n.kind, text=n.text, author=n.author, at=n.at) for n in found])


async def _may_speak(context: Context, job: Job, address: str) -> bool:
    if address in (job.provider, job.last_refuser):
        return True
    try:
        return await context.chain.has_role(SCHEDULER_ROLE, address)
    except ChainError:
        raise chain_is_silent() from None
