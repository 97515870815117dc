"""Approves new measurements of approved providers. Everything else waits for a person."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State

from deepgrid.observability.action_taken import ActionTaken
from deepgrid.operator.approvals import approve, read_proposals
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.action_report import reported_actions
from tasks.run_step import run_step


@flow(name="approve_labels", flow_run_name="approve measurements", persist_result=False)
async def approve_labels(operator: BlockName) -> State[None]:
    """Approve proposals that change only measured labels, if the operator's block allows that.

    Args:
        operator: Name of the operator block; its field `approve_label_changes` enables this flow.
    """
    waiting = []
    async with sessions.operator(operator) as session, reported_actions(f"approve-labels-{operator}") as report:
        switched_on = session.settings.approve_label_changes
        for one in await run_step("read proposals", read_proposals, session):
            if one.concern or not switched_on:
                waiting.append(f"{one.name} waits for the operator: {one.concern or 'approving by itself is off'}.")
                continue
            did = await run_step(f"approve measurements of {one.name}", approve, session, one)
            verb, reason = ("approved measurements of", "") if did else ("left", "its proposal changed meanwhile")
            report.add(ActionTaken(verb, "provider", reason, cluster=one.name))
    return report.end(" ".join(waiting) or "No proposal waits.")
