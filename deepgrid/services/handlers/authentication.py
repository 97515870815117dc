"""Authenticates requests: reads the body within its limit, checks the signature, uses up the nonce.

A signature proves the identity of the signer, not a permission: any party can create a key. So each handler calls
`look_up` before it queries the chain, then decides, and then calls `accept`, which is the first to store data.
A session key is refused unless the handler names a right that it has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from deepgrid.services import messages
from deepgrid.services.admission.gate import read_body
from deepgrid.services.context import Context, Services
from deepgrid.services.core import chain_reads
from deepgrid.services.files.tables import BundleLink
from deepgrid.services.messages import Revocation
from deepgrid.services.refusal import Refusal
from deepgrid.services.signing.request_signing import BadRequestSignature, Verified, require_form, verify
from deepgrid.services.signing.session_keys import Right, Session
from deepgrid.services.storage.database import RevokedSession, UsedNonce

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Signed:
    """An authentic request: the address of its signer (with checksum) and its body."""

    body: bytes = field(repr=False)
    source: str
    _verified: Verified
    _context: Context = field(repr=False)

    @property
    def address(self) -> str:
        return self._verified.address

    @property
    def session(self) -> Session | None:
        """The session whose key signed; None if the wallet signed."""
        return self._verified.session

    @property
    def key_hash(self) -> str | None:
        """The name of the session key that signed; None if the wallet signed."""
        return None if self.session is None else self.session.key_hash(self.address)

    async def trust(self) -> None:
        """Call once the signer is authorised. Refuses a revoked session key."""
        await self.require_session()
        self._context.admission.accept(self.address)

    async def require_session(self) -> None:
        """Refuse with status 401 if a session key signed that is revoked, or whose session ended meanwhile."""
        if self.session is not None:
            async with self._context.database.read() as session:
                await _require_session(session, self._verified, self._context.clock())

    def look_up(self) -> None:
        """Call before a chain query for this signer. Refuses unknown signers with 429 if they query too often."""
        self._context.admission.look_up(self.source, self.address)

    async def accept(self, session: AsyncSession | None = None) -> None:
        """Call once the signer is authorised. Uses up the nonce, in the transaction of `session` if given.

        Refuses a replayed request, and a revoked session key, with status 401.
        """
        if session is None:
            await self.trust()
            if not await self._context.nonces.use_up(self._verified):
                raise _replay_refusal()
            return
        await _require_session(session, self._verified, self._context.clock())
        self._context.admission.accept(self.address)
        await _use_up(session, self._verified)


def signed_request(body_limit: int, *rights: Right) -> Callable[..., Awaitable[Signed]]:
    """Dependency: the signed request with a body of at most `body_limit` bytes.

    A session key needs one of these rights. Without `rights`, only wallets may sign.
    """

    async def authenticate(request: Request, context: Services) -> Signed:
        try:
            require_form(request.headers, context.clock())  # wrong headers are refused without reading the body
        except BadRequestSignature as fault:
            raise Refusal(401, str(fault)) from None
        body = await read_body(request, body_limit)
        path = request.scope["raw_path"].decode("latin-1")
        if request.scope["query_string"]:
            path += "?" + request.scope["query_string"].decode("latin-1")
        try:
            verified = verify(context.domain, request.method, path, body, request.headers, context.clock())
        except BadRequestSignature as fault:
            raise Refusal(401, str(fault)) from None
        context.fence.require_later(verified)
        context.admission.verified(verified)
        if verified.session is not None:
            _require_scope(verified.session, rights, request.headers.get("origin"))
        return Signed(body, request.scope["state"]["source"], verified, context)

    return authenticate


SignedReader = Annotated[Signed, Depends(signed_request(0, "read"))]
SignedSmall = Annotated[Signed, Depends(signed_request(messages.MAX_SMALL_BODY_BYTES))]
SignedNotices = Annotated[Signed, Depends(signed_request(messages.MAX_NOTICES_BODY_BYTES))]
SignedUses = Annotated[Signed, Depends(signed_request(messages.MAX_USES_BODY_BYTES))]
SignedStore = Annotated[Signed, Depends(signed_request(messages.MAX_SMALL_BODY_BYTES, "store"))]
SignedUpload = Annotated[Signed, Depends(signed_request(messages.MAX_UPLOAD_BODY_BYTES, "store"))]
SignedChunk = Annotated[Signed, Depends(signed_request(messages.MAX_LOG_CHUNK_BYTES))]
SignedRevocation = Annotated[Signed, Depends(signed_request(messages.MAX_SMALL_BODY_BYTES, "read", "store", "shell"))]


def _require_scope(session: Session, rights: tuple[Right, ...], origin: str | None) -> None:
    """Refuse what the session key may not do, and pages of other origins."""
    if not rights:
        raise Refusal(403, "a session key may not do this; the wallet itself must sign")
    if not session.has(*rights):
        raise Refusal(403, f"the session key has no right to {rights[0]}")
    if origin is not None and origin != session.origin:
        raise Refusal(403, "the session is for another origin")


async def _require_session(session: AsyncSession, verified: Verified, now: int) -> None:
    if verified.session is None:
        return
    if await session.get(RevokedSession, verified.session.key_hash(verified.address)) is not None:
        raise Refusal(401, "the session key is revoked")
    if now > verified.session.not_after:
        raise Refusal(401, "the session has ended")


async def _use_up(session: AsyncSession, verified: Verified) -> None:
    """Record the nonce. The primary key makes one of two equal requests fail, even across processes."""
    session.add(UsedNonce(signer=verified.signer, nonce=verified.nonce, expires_at=verified.expires_at))
    try:
        await session.flush()
    except IntegrityError:
        raise _replay_refusal() from None


def _replay_refusal() -> Refusal:
    return Refusal(401, "the request was received before: its nonce is used up")


@router.post("/v1/sessions/revoke", status_code=204)
async def revoke(request: SignedRevocation, context: Services) -> None:
    """Revoke a session key of the wallet, with what it opened: its tunnels, and links to files.

    The wallet signs the request, or that session key.
    """
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
        made = update(BundleLink).where(BundleLink.key_hash == key_hash, BundleLink.revoked_at.is_(None))
        await database.execute(made.values(revoked_at=context.clock()))
    await context.switchboard.end_of([key_hash])


async def _require_customer(context: Context, address: str) -> None:
    """Refuse wallets whose session keys can do nothing, so that fresh keys store nothing."""
    least = max(1, await context.minimum_wei())
    with chain_reads():
        if not await context.chain.has_jobs(address) and await context.chain.balance(address) < least:
            raise Refusal(403, f"{address} has no job and too few credits, so its session keys can do nothing")
