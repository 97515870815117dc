"""Tops up jobs near their end from their customers' allowances, if the customers delegated spending."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from deepgrid.chain.transactions.contract_errors import unless_overtaken
from deepgrid.operator.session import OperatorSession
from deepgrid.scheduling.top_ups import Funds, Slice, Unpaid, near_end, plan

KIND = "top-up"  # of the notices

logger = logging.getLogger(__name__)

# Contract errors for a job that ended, and for credits or authority that were withdrawn meanwhile.
OUT_OF_CREDITS = {"ERC20InsufficientAllowance", "ERC20InsufficientBalance"}
OVERTAKEN = OUT_OF_CREDITS | {"NoSpendingAuthority", "RunningScheduledStatusOnly", "RemainingTimeAboveLimit"}
OVERTAKEN |= {"CancelRequested", "SpendingLimitReached"}


async def plan_slices(session: OperatorSession, ahead_minutes: int) -> list[Slice | Unpaid]:
    """Plan a slice for each job that ends within `ahead_minutes`, while its customer's credits last.

    The jobs are read again after the funds. Otherwise a job could miss a slice that its funds have paid for.
    """
    jobs, constants, now = await asyncio.gather(
        session.hot(), session.chain.constants(), session.chain.next_block_time()
    )
    slice_minutes = constants.top_up_slice_minutes
    due = near_end(jobs, slice_minutes, ahead_minutes, now)
    funds = await _funds(session, sorted({job.customer for job in due}))
    due = near_end(await session.chain.jobs([job.id for job in due]), slice_minutes, ahead_minutes, now)
    return plan(due, funds, await session.chain.spendable([job.id for job in due]), slice_minutes)


async def needs_slices(session: OperatorSession, ahead_minutes: int) -> bool:
    """Return whether a job needs a slice, or its customer a notice that no credits are left."""
    planned = await plan_slices(session, ahead_minutes)
    return any(isinstance(one, Slice) or not session.notices.repeats(one.job.id, KIND, one.reason) for one in planned)


async def buy_slice(session: OperatorSession, wanted: Slice) -> bool:
    """Buy a slice of time on chain. Returns False when the job was topped up or ended since the plan was made."""
    job = await session.chain.job(wanted.job.id)
    if job.locked_wei != wanted.job.locked_wei:
        return False
    if error := await unless_overtaken(session.writer.top_up_delegated(job.id), OVERTAKEN):
        logger.info("job %d: not topped up: %s", job.id, error.message)
        return False
    return True


async def tell_unpaid(session: OperatorSession, unpaid: Unpaid) -> None:
    """Notify the customer, once per limit, that no credits are left and the job will end at its limit."""
    session.notices.add_once(unpaid.job.id, KIND, unpaid.reason)
    await session.notices.post()


async def _funds(session: OperatorSession, customers: Sequence[str]) -> dict[str, Funds]:
    async def funds_of(customer: str) -> Funds:
        allowance, balance = await asyncio.gather(session.chain.allowance(customer), session.chain.balance(customer))
        return Funds(allowance, balance)

    return dict(zip(customers, await asyncio.gather(*map(funds_of, customers)), strict=True))
