"""Approves proposals that change only measured labels, if the operator has enabled this.

A proposal is read and checked again right before its approval, and its hash is part of the approval. The contract
reverts if another proposal waits at that time.
"""

from __future__ import annotations

import asyncio
import logging

from deepgrid.chain.offers import proposal_hash
from deepgrid.chain.transactions.contract_errors import unless_overtaken
from deepgrid.errors import NotFound
from deepgrid.operator.session import OperatorSession
from deepgrid.scheduling.proposals import Proposal

logger = logging.getLogger(__name__)

# Contract errors for a proposal that was withdrawn or replaced meanwhile.
OVERTAKEN = frozenset({"WaitingApprovalOnly", "Banned", "ProposalChanged"})


async def read_proposals(session: OperatorSession) -> list[Proposal]:
    """Return proposals that wait for approval, in the order of the providers' registration."""
    waiting = [one.address for one in await session.chain.providers() if one.waiting_for_approval]
    read = await asyncio.gather(*(_read(session, address) for address in waiting))
    return [proposal for proposal in read if proposal is not None]


async def approve(session: OperatorSession, proposal: Proposal) -> bool:
    """Approve the provider's proposal. Returns False if it no longer exists, or now needs a person's approval."""
    address = proposal.address
    current = await _read(session, address)
    if current is None or current.concern:
        return False
    approving = session.writer.approve_proposal(address, proposal_hash(current.proposed))
    if error := await unless_overtaken(approving, OVERTAKEN):
        logger.info("provider %s not approved: %s", current.name, error.message)
        return False
    return True


async def _read(session: OperatorSession, address: str) -> Proposal | None:
    try:
        proposed, standing = await asyncio.gather(session.chain.proposal(address), session.chain.provider(address))
    except NotFound:
        return None
    return None if proposed is None else Proposal(proposed, standing if standing.approved else None)
