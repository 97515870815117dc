"""Buys more time for running jobs whose customers delegated spending."""

from __future__ import annotations

import asyncio
from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed
from pydantic import Field

from deepgrid.operator.delegated_top_ups import buy_slice, plan_slices, tell_unpaid
from deepgrid.scheduling.top_ups import Slice, Unpaid
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.run_step import run_step


@flow(name="auto_top_up", flow_run_name="top up jobs", persist_result=False)
async def auto_top_up(operator: BlockName, ahead_minutes: Annotated[int, Field(ge=3, le=1440)] = 10) -> State[None]:
    """Buy a slice of time for each job near its end, while its customer's allowance and balance last.

    Args:
        operator: Name of the operator block.
        ahead_minutes: Minutes before its end when a job gets more time, 3 to 1440; at most the contract's slice.
            With less, one slow minute can end a job.
    """
    async with sessions.operator(operator) as session:
        planned = await run_step("plan slices", plan_slices, session, ahead_minutes)
        if not planned:
            return Completed(message="No job needs more time.")
        slices = [one for one in planned if isinstance(one, Slice)]
        bought = await asyncio.gather(
            *(run_step(f"buy {one.minutes} min for job {one.job.id}", buy_slice, session, one) for one in slices)
        )
        unpaid = [one for one in planned if isinstance(one, Unpaid)]
        for one in unpaid:
            await run_step(f"say that job {one.job.id} gets no more time", tell_unpaid, session, one)
    messages = [f"Job {one.job.id} got {one.minutes} min." for one, did in zip(slices, bought, strict=True) if did]
    messages += [f"Job {one.job.id} moved on meanwhile." for one, did in zip(slices, bought, strict=True) if not did]
    messages += [f"Job {one.job.id} cannot pay for more." for one in unpaid]
    return Completed(message=" ".join(messages))
