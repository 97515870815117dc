"""The side effects of `expire_claims`."""

from __future__ import annotations

from deepgrid.operator import expiry
from deepgrid.operator.session import OperatorSession
from deepgrid.scheduling.expiry import TakeBack
from runtime.retry_policy import side_effect


@side_effect("read overdue jobs")
async def read_overdue(session: OperatorSession, silent_hours: int, end_running_of_banned: bool) -> list[TakeBack]:
    """Jobs whose provider's time to act is up."""
    return await expiry.overdue_jobs(session, silent_hours, end_running_of_banned)


@side_effect("take back job {taken.job.id} from {taken.cluster}")
async def take_back(session: OperatorSession, taken: TakeBack) -> bool:
    """Take a job from its provider on chain; False when it moved on meanwhile."""
    return await expiry.take_back(session, taken)
