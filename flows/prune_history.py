"""Deletes old runs from Prefect's database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed
from pydantic import Field

from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.old_runs import prune_rounds, prune_runs
from tasks.run_step import run_step


@flow(name="prune_history", flow_run_name="prune history", persist_result=False)
async def prune_history(
    operator: BlockName | None = None,
    cluster: BlockName | None = None,
    keep_days: Annotated[int, Field(ge=1, le=3650)] = 30,
    keep_rounds_hours: Annotated[int, Field(ge=1, le=8760)] = 24,
) -> State[None]:
    """Delete runs that ended long ago, with their task runs, log lines and artifacts.

    Runs that have not ended stay. Runs of jobs that are not over on chain stay too. When the chain does
    not answer, the run fails, and only rounds are deleted.

    Args:
        operator: Name of the operator block, on the operator's server.
        cluster: Name of the provider block, on the server of a provider.
        keep_days: Days for which runs are kept after their end, 1 to 3650.
        keep_rounds_hours: Hours for which runs of flows that only look for work are kept, such as `claim_jobs`; 1 to
            8760.
    """
    now = datetime.now(UTC)
    before = now - timedelta(hours=keep_rounds_hours)
    rounds = await run_step(f"delete rounds that ended before {before:%Y-%m-%d %H:%M}", prune_rounds, before)
    async with sessions.chain_of(operator, cluster) as chain:
        before = now - timedelta(days=keep_days)
        name = f"delete runs that ended before {before:%Y-%m-%d %H:%M}"
        deleted, kept = await run_step(name, prune_runs, chain, before)
    message = (
        f"Deleted {rounds} rounds older than {keep_rounds_hours} h and {deleted} runs older than {keep_days} days."
    )
    return Completed(message=message + (f" Kept {kept} runs of jobs that are not known to be over." if kept else ""))
