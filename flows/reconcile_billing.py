"""Compares the contract's bills with Slurm's accounting and the token's transfers, and names every difference."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from typing import Annotated

from prefect import flow, get_run_logger, runtime
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed
from pydantic import Field

from deepgrid.errors import GridError
from orchestration.grid_events import BOOKS_DIFFER
from orchestration.sessions import BlockName
from tasks.reconciliation import choose_period, compare, cover, keep, open_books, publish
from tasks.run_step import run_step

RETRY_PAUSE_S = 30.0  # after the first attempt; each further pause is twice as long


def _run_name() -> str:
    asked = runtime.flow_run.parameters
    return f"reconcile billing of {asked.get('cluster') or asked.get('operator')}"


@flow(name="reconcile_billing", flow_run_name=_run_name, persist_result=False)
async def reconcile_billing(
    cluster: BlockName | None = None,
    operator: BlockName | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    tolerance_minutes: Annotated[int, Field(ge=0, le=60)] = 1,
    retry_minutes: Annotated[int, Field(ge=0, le=240)] = 30,
) -> State[None]:
    """Check the books of a cluster, or of the whole grid, over a period.

    The run ends as BooksDiffer when anything disagrees, and as Failed when the books cannot be read.

    Args:
        cluster: Name of the provider block whose jobs are checked against its Slurm.
        operator: Name of the operator block, for the books of the whole grid, with receipts in place of Slurm; instead
            of `cluster`.
        since: Start of the period, in UTC unless it has a time zone. By default 24 hours before `until`; without
            `until`, where the last run without a period ended.
        until: End of the period, exclusive; by default now.
        tolerance_minutes: Minutes by which a bill may differ from the run time in Slurm, 0 to 60. With more, wrong
            bills of short jobs pass.
        retry_minutes: Minutes for which an outage of the chain or the login node is retried, 0 to 240.
    """
    deadline, pause_s = time.monotonic() + 60 * retry_minutes, RETRY_PAUSE_S
    while True:
        try:
            return await _check_books(cluster, operator, since, until, tolerance_minutes)
        except GridError as error:
            if not error.transient or time.monotonic() + pause_s > deadline:
                return Failed(message=f"The books were not compared. {error}")
            get_run_logger().warning("the books cannot be read, trying again in %.0f s: %s", pause_s, error.message)
        await asyncio.sleep(pause_s)
        pause_s *= 2


async def _check_books(
    cluster: str | None, operator: str | None, since: datetime | None, until: datetime | None, tolerance_minutes: int
) -> State[None]:
    async with open_books(cluster, operator) as books:
        begin, end = (None if time is None else time.isoformat() for time in (since, until))
        run = str(runtime.flow_run.id or "")
        chosen = await run_step("choose period", choose_period, books, begin, end, run)
        span = chosen.span
        ledger = await run_step("read the chain", books.read_chain, span)
        source = "Slurm's accounting" if cluster else "signed receipts"  # the operator has no Slurm
        runs = await run_step(f"read {source}", books.read_slurm, span, ledger)
        result = await run_step("compare", compare, books, chosen, ledger, runs, tolerance_minutes)
        await run_step("keep the rows", keep, books, result)
        await run_step("publish the report", publish, books, result)
        await run_step("note the period as compared", cover, books, chosen, run, result)
    if not result.clean:
        return Failed(name=BOOKS_DIFFER, message=result.message)
    return Completed(message=result.message)
