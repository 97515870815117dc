"""Assigns pending jobs to clusters, and informs customers why their other jobs wait."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from deepgrid.operator.rounds import assign, decide, end_jobs, read_market, tell
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.action_report import idle, reported_actions
from tasks.artifacts import publish_round
from tasks.run_step import run_step


@flow(name="meta_schedule", flow_run_name="meta-schedule", persist_result=False)
async def meta_schedule(operator: BlockName) -> State[None]:
    """Assign the pending jobs that a cluster can start soon, in fair order. It can be killed at any line.

    Args:
        operator: Name of the operator block.
    """
    async with sessions.operator(operator) as session, reported_actions(f"meta-schedule-ended-{operator}") as report:
        seen = await run_step("read jobs and clusters", read_market, session)
        if seen.is_empty:
            return idle("No job is pending.")
        decision = await decide(session, seen)  # not a task: a round writes little to Prefect's database
        assigned = 0
        if decision.found.assignments:
            assigned = await run_step("assign jobs to clusters", assign, session, decision)
        if seen.to_end:
            report.add(*await run_step("end jobs that wait in vain", end_jobs, session, seen))
        ended = len(report.actions)
        await run_step("tell customers why their jobs wait", tell, session, decision, assigned, ended)
        await run_step("publish the round", publish_round, session, decision)
    message = f"Assigned {assigned} of {len(seen.pending)} pending jobs; {len(decision.found.waiting)} wait."
    return Completed(message=message + (f" Ended {ended} that waited in vain." if ended else ""))
