"""Takes back jobs that no provider claimed in time, and jobs of providers that do not act."""

from __future__ import annotations

import asyncio
from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed
from pydantic import Field

from deepgrid.operator.expiry import read_overdue, take_back
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.run_step import run_step


@flow(name="expire_claims", flow_run_name="expire claims", persist_result=False)
async def expire_claims(
    operator: BlockName,
    silent_hours: Annotated[int, Field(ge=24, le=720)] = 24,
    end_running_of_banned: bool = False,
) -> State[None]:
    """Take jobs back from providers that do not act. They go to another cluster, or end with a full refund.

    Args:
        operator: Name of the operator block.
        silent_hours: Hours that a claimed job may be overdue at a provider in force before it is taken back. At least
        24, because the contract allows no less, and at most 720: credits stay locked for that time.
        end_running_of_banned: End jobs that run at banned or removed providers at once, with a full
            refund. Otherwise they stay until a day after their paid time.
    """
    async with sessions.operator(operator) as session:
        overdue = await run_step("read overdue jobs", read_overdue, session, silent_hours, end_running_of_banned)
        if not overdue:
            return Completed(message="No claim is overdue.")
        done = await asyncio.gather(
            *(run_step(f"take back job {one.job.id} from {one.cluster}", take_back, session, one) for one in overdue)
        )
    taken = [f"job {one.job.id} from {one.cluster}" for one, did in zip(overdue, done, strict=True) if did]
    others = [f"Job {one.job.id} moved on meanwhile." for one, did in zip(overdue, done, strict=True) if not did]
    return Completed(message=" ".join([f"Took back {', '.join(taken)}."] * bool(taken) + others))
