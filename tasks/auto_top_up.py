"""The side effects of `auto_top_up`."""

from __future__ import annotations

from deepgrid.operator import delegated_top_ups as auto_top_up
from deepgrid.operator.session import OperatorSession
from deepgrid.scheduling.top_ups import Slice, Unpaid
from runtime.retry_policy import side_effect


@side_effect("plan slices")
async def plan_slices(session: OperatorSession, ahead_minutes: int) -> list[Slice | Unpaid]:
    """Find the jobs near their end, and what their customers can pay."""
    return await auto_top_up.plan_slices(session, ahead_minutes)


@side_effect("buy {wanted.minutes} min for job {wanted.job.id}")
async def buy_slice(session: OperatorSession, wanted: Slice) -> bool:
    """Buy a slice of time on chain; False when the job needs or gets none any more."""
    return await auto_top_up.buy_slice(session, wanted)


@side_effect("tell that job {unpaid.job.id} gets no more time")
async def tell_unpaid(session: OperatorSession, unpaid: Unpaid) -> None:
    """Let the customer know that nothing is left to pay for more time."""
    await auto_top_up.tell_unpaid(session, unpaid)
