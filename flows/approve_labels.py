"""Approves new measurements of approved providers. Everything else waits for a person."""

from __future__ import annotations

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed

from deepgrid.operator.approvals import approve, read_proposals
from orchestration import sessions
from orchestration.sessions import BlockName
from tasks.run_step import run_step


@flow(name="approve_labels", flow_run_name="approve measurements", persist_result=False)
async def approve_labels(operator: BlockName) -> State[None]:
    """Approve proposals that change only measured labels, if the operator's block allows that.

    Args:
        operator: Name of the operator block; its field `approve_label_changes` enables this flow.
    """
    async with sessions.operator(operator) as session:
        proposals = await run_step("read proposals", read_proposals, session)
        if not proposals:
            return Completed(message="No proposal waits.")
        switched_on = session.settings.approve_label_changes
        messages = []
        for one in proposals:
            if one.concern or not switched_on:
                messages.append(f"{one.name} waits for the operator: {one.concern or 'approving by itself is off'}.")
            elif await run_step(f"approve measurements of {one.name}", approve, session, one):
                messages.append(f"Approved new measurements of {one.name}.")
            else:
                messages.append(f"{one.name} changed its proposal meanwhile.")
    return Completed(message=" ".join(messages))
