"""Takes jobs back from providers that do not act, so that no job or deposit gets stuck."""

from __future__ import annotations

import asyncio
import logging

from deepgrid.chain.transactions.contract_errors import unless_overtaken
from deepgrid.lifecycle.job import Job
from deepgrid.operator.session import OperatorSession
from deepgrid.scheduling.expiry import Patience, TakeBack, overdue

logger = logging.getLogger(__name__)

# Contract errors for a job that was claimed, settled or given back meanwhile.
OVERTAKEN = frozenset({"TimeoutTooEarly", "InvalidTransition", "SameStatusError", "JobHotStatusOnly"})


async def read_overdue(session: OperatorSession, silent_hours: int, end_running_of_banned: bool) -> list[TakeBack]:
    """Return the jobs whose provider will be overdue in the next block."""
    jobs, providers, constants, now = await asyncio.gather(
        session.hot(), session.providers(), session.chain.constants(), session.chain.next_block_time()
    )
    patience = Patience(constants.claim_timeout_minutes, silent_hours, end_running_of_banned)
    return overdue(jobs, {one.address: one for one, _ in providers}, patience, now)


async def take_back(session: OperatorSession, taken: TakeBack) -> bool:
    """Take a job from its provider on chain, and tell the customer why. Returns False if the job changed meanwhile."""
    job = taken.job
    if _progress(await session.chain.job(job.id)) != _progress(job):
        return False
    taking = session.writer.panic_job(job.id, taken.reason) if taken.panic else session.writer.time_out(job.id)
    if error := await unless_overtaken(taking, OVERTAKEN):
        logger.info("job %d: not taken back: %s", job.id, error.message)
        return False
    assert job.provider is not None
    session.memory.took_back(job.id, job.provider, taken.reason)
    session.notices.add([(job.id, "expired", taken.reason)])
    await session.notices.post()
    return True


def _progress(job: Job) -> tuple[object, ...]:
    """Return the fields of a job that change with every step of its provider."""
    return job.status, job.provider, job.assigned_at, job.claimed_at
