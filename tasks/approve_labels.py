"""The side effects of `approve_labels`."""

from __future__ import annotations

from deepgrid.operator import approvals
from deepgrid.operator.session import OperatorSession
from deepgrid.scheduling.proposals import Proposal
from runtime.retry_policy import side_effect


@side_effect("read proposals")
async def read_proposals(session: OperatorSession) -> list[Proposal]:
    """What providers proposed and nobody approved yet."""
    return await approvals.waiting_proposals(session)


@side_effect("approve measurements of {proposal.name}")
async def approve(session: OperatorSession, proposal: Proposal) -> bool:
    """Put a proposal in force; False when it is not the same any more."""
    return await approvals.approve_unless_changed(session, proposal.address)
