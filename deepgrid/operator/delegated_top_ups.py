"""Tops up jobs near their end from their customers' allowances, where the customers gave authority."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from deepgrid.errors import ContractError
from deepgrid.operator.session import OperatorSession
from deepgrid.scheduling.top_ups import Purse, Slice, Unpaid, near_end, plan

logger = logging.getLogger(__name__)

# The contract's words for a job that ended, and for credits or authority that went elsewhere meanwhile.
NOT_ANY_MORE = frozenset(
    {
        "NoSpendingAuthority", "RunningScheduledStatusOnly", "RemainingTimeAboveLimit",
        "ERC20InsufficientAllowance", "ERC20InsufficientBalance",
    }
)  # fmt: skip


async def plan_slices(session: OperatorSession, ahead_minutes: int) -> list[Slice | Unpaid]:
    """A slice for each job that ends within `ahead_minutes`, as far as its customer's credits last."""
    jobs, constants, now = await asyncio.gather(session.hot(), session.chain.constants(), session.chain.now())
    due = near_end(jobs, constants.top_up_slice_minutes, ahead_minutes, now)
    purses = await _purses(session, sorted({job.customer for job in due}))
    return plan(due, purses, constants.top_up_slice_minutes)


async def buy_slice(session: OperatorSession, wanted: Slice) -> bool:
    """Buy the slice, once: not when the job was topped up or ended since the plan was made."""
    job = await session.chain.job(wanted.job.id)
    if job.locked_wei != wanted.job.locked_wei:
        return False
    try:
        await session.writer.top_up_delegated(job.id)
    except ContractError as error:
        if error.name not in NOT_ANY_MORE:
            raise
        logger.info("job %d not topped up: %s", job.id, error.message)
        return False
    return True


async def tell_unpaid(session: OperatorSession, unpaid: Unpaid) -> None:
    """Let the customer know, once for each limit, that the job will end at it."""
    await session.say(unpaid.job.id, "top-up", unpaid.reason)


async def _purses(session: OperatorSession, customers: Sequence[str]) -> dict[str, Purse]:
    async def purse(customer: str) -> Purse:
        allowance, balance = await asyncio.gather(session.chain.allowance(customer), session.chain.balance(customer))
        return Purse(allowance, balance)

    return dict(zip(customers, await asyncio.gather(*map(purse, customers)), strict=True))
