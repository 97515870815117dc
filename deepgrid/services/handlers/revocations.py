"""Ends session keys. A revoked key is remembered until its session would have ended."""

from __future__ import annotations

from fastapi import APIRouter
from sqlalchemy import func, select

from deepgrid.errors import ChainError
from deepgrid.services.context import Context, Services, chain_is_silent
from deepgrid.services.handlers.authentication import SignedRevocation
from deepgrid.services.messages import Revocation
from deepgrid.services.refusal import Refusal
from deepgrid.services.signing.request_signing import BadRequestSignature
from deepgrid.services.signing.session_keys import Session
from deepgrid.services.storage.database import RevokedSession

router = APIRouter()


@router.post("/v1/sessions/revoke", status_code=204)
async def revoke(request: SignedRevocation, context: Services) -> None:
    """Revoke a session key of the wallet. The wallet signs the request, or that session key."""
    message = Revocation.model_validate_json(request.body)
    try:
        session = Session.parse(message.session)
        owner = session.wallet(context.domain)
    except BadRequestSignature as fault:
        raise Refusal(422, str(fault)) from None
    if owner != request.address:
        raise Refusal(403, f"{request.address} has not signed this session")
    if request.session is not None and request.session.public_key != session.public_key:
        raise Refusal(403, "a session key revokes only itself")
    request.look_up()
    await _require_customer(context, owner)
    async with context.database.write() as database:
        await request.accept(database)
        own = select(func.count()).where(RevokedSession.wallet == owner)
        if (await database.scalar(own) or 0) >= context.admission.limits.revocations_per_wallet:
            raise Refusal(429, "too many session keys are revoked; they end by themselves")
        key_hash = session.key_hash(owner)
        known = await database.get(RevokedSession, key_hash)
        until = max(session.not_after, known.until if known else 0)
        await database.merge(RevokedSession(key_hash=key_hash, wallet=owner, until=until))


async def _require_customer(context: Context, address: str) -> None:
    """Refuse wallets whose session keys can do nothing, so that fresh keys store nothing."""
    least = max(1, await context.minimum_wei())
    try:
        if not await context.chain.has_jobs(address) and await context.chain.balance(address) < least:
            raise Refusal(403, f"{address} has no job and too few credits, so its session keys can do nothing")
    except ChainError:
        raise chain_is_silent() from None
