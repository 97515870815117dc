"""Authenticates requests: reads the body within its limit, checks the signature, uses up the nonce.

A signature proves the identity of the signer, not a permission: any party can create a key. So each handler calls
`look_up` before it queries the chain, then decides, and then calls `accept`, which is the first to store data.
A session key is refused unless the handler names a right that it has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.requests import ClientDisconnect

from deepgrid.services import messages
from deepgrid.services.context import Context, Services
from deepgrid.services.refusal import Refusal
from deepgrid.services.signing.request_signing import BadRequestSignature, Verified, require_form, verify
from deepgrid.services.signing.session_keys import Right, Session
from deepgrid.services.storage.database import RevokedSession, UsedNonce


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
                raise _replayed()
            return
        await _require_session(session, self._verified, self._context.clock())
        self._context.admission.accept(self.address)
        await _use_up(session, self._verified)


def signed(body_limit: int, *rights: Right) -> Callable[..., Awaitable[Signed]]:
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


SignedReader = Annotated[Signed, Depends(signed(0, "read"))]
SignedSmall = Annotated[Signed, Depends(signed(messages.MAX_SMALL_BODY_BYTES))]
SignedNotices = Annotated[Signed, Depends(signed(messages.MAX_NOTICES_BODY_BYTES))]
SignedUpload = Annotated[Signed, Depends(signed(messages.MAX_UPLOAD_BODY_BYTES, "store"))]
SignedChunk = Annotated[Signed, Depends(signed(messages.MAX_LOG_CHUNK_BYTES))]
SignedRevocation = Annotated[Signed, Depends(signed(messages.MAX_SMALL_BODY_BYTES, "read", "store"))]


async def read_body(request: Request, limit: int) -> bytes:
    """Read the body, which the proxy has already received. Refuse it as soon as it exceeds the limit."""
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > limit:
        raise _too_large(limit)
    received = bytearray()
    try:
        async for piece in request.stream():
            received += piece
            if len(received) > limit:
                raise _too_large(limit, hang_up=True)
    except ClientDisconnect:
        raise Refusal(400, "the connection was closed before the body's end") from None
    return bytes(received)


def _too_large(limit: int, *, hang_up: bool = False) -> Refusal:
    return Refusal(413, f"the body is larger than {limit} bytes", hang_up=hang_up)


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
    """Record the nonce. The primary key makes one of two equal requests fail, also across processes."""
    session.add(UsedNonce(signer=verified.signer, nonce=verified.nonce, expires_at=verified.expires_at))
    try:
        await session.flush()
    except IntegrityError:
        raise _replayed() from None


def _replayed() -> Refusal:
    return Refusal(401, "the request was received before: its nonce is used up")
