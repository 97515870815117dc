"""Notices: why a job waits, why a cluster was chosen, why a cluster refused the job. Public, like the chain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastapi import APIRouter
from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.services.context import Context, JobId, Services
from deepgrid.services.core import chain_reads
from deepgrid.services.handlers.authentication import SignedNotices, SignedSmall
from deepgrid.services.messages import JobNotice, Notice, NoticeBatch, Notices, NoticeText
from deepgrid.services.refusal import Refusal
from deepgrid.services.storage.database import NoticeRecord

SCHEDULER_ROLE = "METASCHEDULER_ROLE"

router = APIRouter()


@router.post("/v1/jobs/{job_id}/notices", status_code=204)
async def post(job_id: JobId, request: SignedSmall, context: Services) -> None:
    """Add a notice, unless it repeats the author's last notice on this job."""
    notice = NoticeText.model_validate_json(request.body)
    request.look_up()
    job = await context.job(job_id)
    takes_part = request.address in (job.provider, job.last_refuser)
    if not takes_part and not await _schedules(context, request.address):
        raise Refusal(403, f"{request.address} has no part in job {job_id}")
    async with context.database.write() as session:
        await request.accept(session)
        await _add(session, context, request.address, [JobNotice(job_id=job_id, kind=notice.kind, text=notice.text)])


@router.post("/v1/notices", status_code=204)
async def post_many(request: SignedNotices, context: Services) -> None:
    """Add notices on many jobs, all or none, for the meta-scheduler. Repeated ones add nothing, as above."""
    notices = NoticeBatch.model_validate_json(request.body).notices
    request.look_up()
    if not await _schedules(context, request.address):
        raise Refusal(403, f"{request.address} has not the role {SCHEDULER_ROLE}")
    with chain_reads():
        last = await context.chain.job_count()
    if unknown := next((one.job_id for one in notices if one.job_id > last), None):
        raise Refusal(404, f"there is no job {unknown}")
    async with context.database.write() as session:
        await request.accept(session)
        await _add(session, context, request.address, notices)


@router.get("/v1/jobs/{job_id}/notices")
async def notices(job_id: JobId, context: Services) -> Notices:
    """Return all notices on a job, oldest first."""
    async with context.database.read() as session:
        wanted = select(NoticeRecord).where(NoticeRecord.job_id == job_id).order_by(NoticeRecord.id)
        found = (await session.scalars(wanted)).all()
    return Notices(notices=[Notice(kind=n.kind, text=n.text, author=n.author, at=n.at) for n in found])


async def _add(session: AsyncSession, context: Context, author: str, notices: Sequence[JobNotice]) -> None:
    """Store the notices that do not repeat their predecessor, and delete the oldest of jobs that have too many."""
    said = await _last_said(session, author, {one.job_id for one in notices})
    new: list[JobNotice] = []
    for one in notices:
        if said.get(one.job_id) != (one.kind, one.text):
            said[one.job_id] = one.kind, one.text
            new.append(one)
    at = context.clock()
    session.add_all(NoticeRecord(job_id=one.job_id, author=author, kind=one.kind, text=one.text, at=at) for one in new)
    await session.flush()
    await _delete_oldest(session, {one.job_id for one in new}, context.admission.limits.notices_per_job)


async def _last_said(session: AsyncSession, author: str, job_ids: Iterable[int]) -> dict[int, tuple[str, str]]:
    """Return the author's last notice on each of these jobs: its kind and text."""
    of_author = (NoticeRecord.author == author, NoticeRecord.job_id.in_(job_ids))
    newest = select(func.max(NoticeRecord.id)).where(*of_author).group_by(NoticeRecord.job_id)
    found = await session.scalars(select(NoticeRecord).where(NoticeRecord.id.in_(newest)))
    return {one.job_id: (one.kind, one.text) for one in found}


async def _delete_oldest(session: AsyncSession, job_ids: Iterable[int], most: int) -> None:
    count = func.count()
    counted = select(NoticeRecord.job_id).where(NoticeRecord.job_id.in_(job_ids)).group_by(NoticeRecord.job_id)
    for job_id in (await session.scalars(counted.having(count > most))).all():
        of_job = NoticeRecord.job_id == job_id
        kept = select(NoticeRecord.id).where(of_job).order_by(NoticeRecord.id.desc()).limit(most)
        oldest_kept = min((await session.scalars(kept)).all())
        await session.execute(delete(NoticeRecord).where(of_job, NoticeRecord.id < oldest_kept))


async def _schedules(context: Context, address: str) -> bool:
    with chain_reads():
        return await context.chain.has_role(SCHEDULER_ROLE, address)
