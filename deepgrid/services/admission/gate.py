"""Decides on requests before they are read, and before an unknown signer causes a query of chain or store."""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from eth_utils.address import is_address, to_checksum_address
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deepgrid.services.admission.limits import Buckets, Limits, Shares, source_in
from deepgrid.services.refusal import Refusal
from deepgrid.services.signing.request_signing import ADDRESS_HEADER, Verified

KNOWN_FOR_S = 3600.0
MOST_KNOWN = 20_000
MOST_NONCES = 20_000
PUBLIC = re.compile(r"/v1/(queue|jobs/[0-9]{1,19}/(queue|notices))\Z")  # cheap reads, which the proxy limits


class Admission:
    """The counters of one service, per source address and per signer."""

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._clock = clock
        self.strangers = Buckets(limits.strangers_per_address, clock)
        self.running = Shares(limits.running_per_address, limits.running)
        self.followers_by_job = Shares(limits.followers_per_job, limits.followers)
        self._signers = Buckets(limits.requests_per_signer, clock)
        self._lookups_by_address = Buckets(limits.lookups_per_address, clock)
        self._lookups = Buckets(limits.lookups, clock)
        self._known: OrderedDict[str, float] = OrderedDict()
        self._nonces: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def admit(self, source: str, signer: str = "") -> None:
        """Count a request before it is read. `signer` is claimed, not verified. Refuses strangers above their rate."""
        if not self.knows(signer):
            self.strangers.require(source)

    def verified(self, verified: Verified) -> None:
        """Count a request with a valid signature.

        Refuses a replayed request, as far as this process remembers, even if it was refused the first time.
        """
        self._signers.require(verified.address)
        key = (verified.signer, verified.nonce)
        if key in self._nonces:
            raise Refusal(401, "the request was received before: its nonce is used up")
        self._nonces[key] = None
        if len(self._nonces) > MOST_NONCES:
            self._nonces.popitem(last=False)

    def look_up(self, source: str, signer: str) -> None:
        """Count a chain call for this signer, unless the signer was accepted recently. Refuses above the rates."""
        if not self.knows(signer):
            self._lookups_by_address.require(source)
            self._lookups.require("")

    def accept(self, signer: str) -> None:
        """Record that the signer was authorised."""
        self._known[signer] = self._clock() + KNOWN_FOR_S
        self._known.move_to_end(signer)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    def knows(self, signer: str) -> bool:
        """Return whether the signer was accepted recently."""
        return self._known.get(signer, 0.0) > self._clock()


class Capabilities(Protocol):
    """Recognises paths that only an authorised party can know."""

    def knows(self, path: str) -> bool: ...


class Gate:
    """ASGI middleware: refuses requests above the limits of strangers, before reading them.

    It also gives each handler the source address.
    """

    def __init__(
        self,
        app: ASGIApp,
        admission: Admission,
        addresses: Capabilities | None = None,
        tunnels: Capabilities | None = None,
    ) -> None:
        """Requests at an authentic address of files, which `addresses` checks, do not count as requests of strangers.

        WebSockets are opened at paths that `tunnels` knows, and nowhere else.
        """
        self._app = app
        self._admission = admission
        self._addresses = addresses
        self._tunnels = tunnels

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            if self._tunnels is not None and self._tunnels.knows(scope["path"]):
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close"})  # which is the status 403
            return
        if scope["type"] != "http":
            return
        source = source_in(scope)
        scope["state"] = {**scope.get("state", {}), "source": source}
        if scope["method"] == "GET" and PUBLIC.match(scope["path"]):
            await self._answered(scope, receive, send)
            return
        try:
            if self._addresses is None or not self._addresses.knows(scope["path"]):
                self._admission.admit(source, _claimed_signer(scope))
        except Refusal as refusal:
            await _answer(refusal, send)
            return
        with self._admission.running.hold(source) as held:
            if not held:
                await _answer(Refusal(429, "too many requests at once", retry_after_s=1), send)
                return
            await self._answered(scope, receive, send)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, even if the service stops meanwhile."""
        begun = False

        async def observed(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, observed)
        except asyncio.CancelledError:  # only the end of the service cancels a request
            if not begun:
                await _answer(Refusal(503, "the service stops", retry_after_s=2), send)


def _claimed_signer(scope: Scope) -> str:
    """Return the address in the request's header, which is not verified yet."""
    claimed = Headers(scope=scope).get(ADDRESS_HEADER, "")
    return str(to_checksum_address(claimed)) if is_address(claimed) else ""


async def _answer(refusal: Refusal, send: Send) -> None:
    answer = JSONResponse({"error": refusal.sentence}, refusal.status, refusal.headers())
    await send({"type": "http.response.start", "status": answer.status_code, "headers": answer.raw_headers})
    await send({"type": "http.response.body", "body": answer.body})


async def read_body(request: Request, limit: int) -> bytes:
    """Read the body, which the proxy has already received. Refuse it as soon as it exceeds the limit."""
    received = bytearray()
    async for piece in _pieces(request, limit):
        received += piece
    return bytes(received)


async def read_body_into(request: Request, target: memoryview) -> int:
    """Read the body into memory; returns its size. Refuse it as soon as there is no room for it."""
    size = 0
    async for piece in _pieces(request, len(target)):
        target[size : size + len(piece)] = piece
        size += len(piece)
    return size


async def _pieces(request: Request, limit: int) -> AsyncIterator[bytes]:
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > limit:
        raise _too_large(limit)
    size = 0
    try:
        async for piece in request.stream():
            size += len(piece)
            if size > limit:
                raise _too_large(limit, hang_up=True)
            yield piece
    except ClientDisconnect:
        raise Refusal(400, "the connection was closed before the body's end") from None


def _too_large(limit: int, *, hang_up: bool = False) -> Refusal:
    return Refusal(413, f"the body is larger than {limit} bytes", hang_up=hang_up)
