"""Approves changes of providers that are measurements and nothing else, where the operator wants that.

A proposal is read and judged again right before it is approved, and approved by the hash of what was judged.
The contract refuses when another proposal waits by then.
"""

from __future__ import annotations

import asyncio
import logging

from deepgrid.chain.offers import proposal_hash
from deepgrid.errors import ContractError, NotFound
from deepgrid.operator.session import OperatorSession
from deepgrid.scheduling.proposals import Proposal

logger = logging.getLogger(__name__)

# The contract's words for a proposal that is gone or was replaced meanwhile.
OVERTAKEN = frozenset({"WaitingApprovalOnly", "Banned", "ProposalChanged"})


async def waiting_proposals(session: OperatorSession) -> list[Proposal]:
    """What waits for approval, in the order of the providers' registration."""
    waiting = [one.address for one in await session.chain.providers() if one.waiting_for_approval]
    read = await asyncio.gather(*(_read(session, address) for address in waiting))
    return [proposal for proposal in read if proposal is not None]


async def approve_unless_changed(session: OperatorSession, address: str) -> bool:
    """Approve what waits, if it still concerns nobody; False when it does not, or nothing waits."""
    proposal = await _read(session, address)
    if proposal is None or proposal.concern:
        return False
    try:
        await session.writer.approve_proposal(address, proposal_hash(proposal.proposed))
    except ContractError as error:
        if error.name not in OVERTAKEN:
            raise
        logger.info("%s not approved: %s", proposal.name, error.message)
        return False
    return True


async def _read(session: OperatorSession, address: str) -> Proposal | None:
    try:
        proposed, standing = await asyncio.gather(session.chain.proposal(address), session.chain.provider(address))
    except NotFound:
        return None
    return None if proposed is None else Proposal(proposed, standing if standing.approved else None)
