"""Assigns pending jobs to clusters, and tells customers why their other jobs wait."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from orchestration import sessions
from tasks.meta_schedule import assign, decide, end_jobs, publish, read_market, tell


@flow(name="meta_schedule", flow_run_name="meta-schedule", persist_result=False)
async def meta_schedule(operator: str) -> State[None]:
    """Assign the pending jobs that a cluster can start soon, in fair order. It can be killed at any line.

    Args:
        operator: Name of the operator block.
    """
    async with sessions.operator(operator) as session:
        seen = await read_market(session)
        if seen.is_empty:
            return Completed(message="No job is pending.")
        decision = await decide(session, seen)
        assigned = await assign(session, decision) if decision.found.assignments else 0
        ended = await end_jobs(session, seen) if seen.to_end else 0
        await tell(session, decision, assigned, ended)
        await publish(session, decision)
    message = f"Assigned {assigned} of {len(seen.pending)} pending jobs; {len(decision.found.waiting)} wait."
    return Completed(message=message + (f" Ended {ended} that waited in vain." if ended else ""))
