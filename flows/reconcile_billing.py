"""Compares the contract's bills with Slurm's accounting and the token's transfers, and names every difference."""

from __future__ import annotations

from typing import Annotated

from prefect import flow, runtime
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed
from pydantic import Field

from tasks.reconciliation import compare, keep, open_books, publish
from tasks.run_step import run_step


def _run_name() -> str:
    asked = runtime.flow_run.parameters
    return f"reconcile billing of {asked.get('cluster') or asked.get('operator')}"


@flow(name="reconcile_billing", flow_run_name=_run_name, persist_result=False)
async def reconcile_billing(
    cluster: str | None = None,
    operator: str | None = None,
    since: str | None = None,
    until: str | None = None,
    tolerance_minutes: Annotated[int, Field(ge=0, le=60)] = 1,
) -> State[None]:
    """Check the books of a cluster, or of the whole grid, over a period. Fails when anything disagrees.

    Args:
        cluster: Name of the provider block whose jobs are checked against its Slurm.
        operator: Name of the operator block, for the books of the whole grid without Slurm; instead of `cluster`.
        since: Start of the period in UTC, such as 2026-11-20 or 2026-11-20T14:30; by default 24 hours before its end.
        until: End of the period, exclusive; by default now.
        tolerance_minutes: Minutes by which a bill may differ from the run time in Slurm, 0 to 60. With more, wrong
            bills of short jobs pass.
    """
    async with open_books(cluster, operator) as books:
        span = await run_step("choose period", books.period, since, until)
        ledger = await run_step("read the chain", books.read_chain, span)
        runs = None
        if cluster:  # the operator has no Slurm
            runs = await run_step("read Slurm's accounting", books.read_slurm, span, ledger)
        result = await run_step("compare", compare, books, span, ledger, runs, tolerance_minutes)
        await run_step("keep the rows", keep, books, result)
        await run_step("publish the report", publish, books, result)
    if not result.clean:
        return Failed(message=result.message)
    return Completed(message=result.message)
