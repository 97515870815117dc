"""Deletes old runs from Prefect's database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

from prefect import flow
from prefect.client.schemas.objects import State
from pydantic import Field

from deepgrid.observability.action_taken import ActionTaken
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.action_report import reported_actions
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
        keep_rounds_hours: Hours for which rounds are kept, 1 to 8760. A round is a run of `claim_jobs` or
            `meta_schedule`, or one that found nothing to do.
    """
    now = datetime.now(UTC)
    async with reported_actions(f"prune-history-{operator or cluster}") as report:
        before = now - timedelta(hours=keep_rounds_hours)
        rounds = await run_step(f"delete rounds that ended before {before:%Y-%m-%d %H:%M}", prune_rounds, before)
        if rounds:
            report.add(ActionTaken("deleted", "round", f"older than {keep_rounds_hours} h", count=rounds))
        async with sessions.chain_of(operator, cluster) as chain:
            before = now - timedelta(days=keep_days)
            name = f"delete runs that ended before {before:%Y-%m-%d %H:%M}"
            deleted, kept = await run_step(name, prune_runs, chain, before)
        if deleted:
            report.add(ActionTaken("deleted", "run", f"older than {keep_days} days", count=deleted))
    needed = f"Kept {kept} runs of jobs that are not known to be over." if kept else ""
    return report.end("No run is old enough.", needed)
