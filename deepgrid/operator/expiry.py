"""Takes jobs back from providers that do not act, so that no job and no deposit is stuck with them."""

from __future__ import annotations

import asyncio
import logging

from deepgrid.errors import ContractError
from deepgrid.lifecycle.job import Job
from deepgrid.operator.session import OperatorSession
from deepgrid.scheduling.expiry import Patience, TakeBack, overdue

logger = logging.getLogger(__name__)

# The contract's words for a job that was claimed, settled or given back meanwhile.
MOVED_ON = frozenset({"TimeoutTooEarly", "InvalidTransition", "SameStatusError", "JobHotStatusOnly"})


async def overdue_jobs(session: OperatorSession, silent_hours: int, end_running_of_banned: bool) -> list[TakeBack]:
    """The jobs whose provider's time is up, by the chain's clock."""
    jobs, providers, constants, now = await asyncio.gather(
        session.hot(), session.chain.providers(), session.chain.constants(), session.chain.now()
    )
    patience = Patience(constants.claim_timeout_minutes, silent_hours, end_running_of_banned)
    return overdue(jobs, {one.address: one for one in providers}, patience, now)


async def take_back(session: OperatorSession, taken: TakeBack) -> bool:
    """Take the job from its provider, and tell the customer why; False when it moved on meanwhile."""
    job = taken.job
    if _stand(await session.chain.job(job.id)) != _stand(job):
        return False
    try:
        await session.writer.time_out(job.id)
    except ContractError as error:
        if error.name not in MOVED_ON:
            raise
        logger.info("job %d not taken back: %s", job.id, error.message)
        return False
    assert job.provider is not None
    session.note_time_out(job.id, job.provider, taken.reason)
    await session.say(job.id, "expired", taken.reason)
    return True


def _stand(job: Job) -> tuple[object, ...]:
    """Where a job stands: what differs after any step of its provider."""
    return job.status, job.provider, job.assigned_at, job.claimed_at
