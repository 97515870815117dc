"""Deletes old runs from Prefect's database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed
from pydantic import Field

from orchestration import sessions
from tasks.prune_history import prune_rounds, prune_runs


@flow(name="prune_history", flow_run_name="prune history", persist_result=False)
async def prune_history(
    operator: str = "",
    cluster: str = "",
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
    rounds = await prune_rounds(now - timedelta(hours=keep_rounds_hours))
    async with sessions.chain_of(operator, cluster) as chain:
        deleted, kept = await prune_runs(chain, now - timedelta(days=keep_days))
    message = (
        f"Deleted {rounds} rounds older than {keep_rounds_hours} h and {deleted} runs older than {keep_days} days."
    )
    return Completed(message=message + (f" Kept {kept} runs of jobs that are not known to be over." if kept else ""))
