"""Assigns pending jobs to clusters, and tells customers why their other jobs wait."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from deepgrid.scheduling.match import Assignment, Waiting, match
from runtime import sessions
from tasks.meta_schedule import assign, publish_reason, read_clusters, read_pending, read_refusals


@flow(name="meta_schedule", flow_run_name="meta-schedule", persist_result=False)
async def meta_schedule(operator: str) -> State[None]:
    """Assign every pending job that fits a cluster, oldest first.

    Args:
        operator: Name of the operator block.
    """
    async with sessions.operator(operator) as session:
        pending = await read_pending(session)
        if not pending:
            return Completed(message="No job is pending.")
        clusters = await read_clusters(session)
        refusals = await read_refusals(session, pending)
        decisions = match(pending, clusters, refusals)
        assignments = [one for one in decisions if isinstance(one, Assignment)]
        assigned = await assign(session, assignments) if assignments else 0
        for one in decisions:
            if isinstance(one, Waiting):
                await publish_reason(session, one)
    waiting = len(decisions) - len(assignments)
    return Completed(message=f"Assigned {assigned} of {len(pending)} pending jobs; {waiting} wait.")
