"""Buys more time for running jobs whose customers delegated spending."""

from __future__ import annotations

import asyncio
from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from pydantic import Field

from deepgrid.observability.action_taken import ActionTaken
from deepgrid.operator.delegated_top_ups import buy_slice, plan_slices, tell_unpaid
from deepgrid.scheduling.top_ups import Slice, Unpaid
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.action_report import reported_actions
from tasks.run_step import run_step


@flow(name="auto_top_up", flow_run_name="top up jobs", persist_result=False)
async def auto_top_up(operator: BlockName, ahead_minutes: Annotated[int, Field(ge=3, le=1440)] = 10) -> State[None]:
    """Buy a slice of time for each job near its end, while its customer's allowance and balance last.

    Args:
        operator: Name of the operator block.
        ahead_minutes: Minutes before its end when a job gets more time, 3 to 1440; at most the contract's slice.
            With less, one slow minute can end a job.
    """
    async with sessions.operator(operator) as session, reported_actions(f"auto-top-up-{operator}") as report:
        planned = await run_step("plan slices", plan_slices, session, ahead_minutes)
        slices = [one for one in planned if isinstance(one, Slice)]
        bought = await asyncio.gather(
            *(run_step(f"buy {one.minutes} min for job {one.job.id}", buy_slice, session, one) for one in slices)
        )
        report.add(*map(_action, slices, bought))
        for one in planned:
            if isinstance(one, Unpaid):
                await run_step(f"say that job {one.job.id} gets no more time", tell_unpaid, session, one)
                report.add(ActionTaken("bought no time for", "job", one.reason, one.job.id, customer=one.job.customer))
    return report.end("No job needs more time.")


def _action(wanted: Slice, did: bool) -> ActionTaken:
    return ActionTaken(
        verb="bought time for" if did else "left",
        noun="job",
        reason=f"{wanted.minutes} more minutes" if did else "it moved on meanwhile",
        job_id=wanted.job.id,
        customer=wanted.job.customer,
        cost_wei=wanted.cost_wei if did else None,
    )
