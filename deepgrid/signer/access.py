"""Admits callers of the signer: only the page of its own address, whose user has opened the printed address.

The address holds a one-time token in its fragment, which browsers do not send. The page exchanges it once for the
secret of a session. The page keeps it in the storage of its origin and sends it as a header. Browsers never add that
header by themselves, and other sites and other ports of this machine are other origins. No cookie counts, because
browsers send cookies to all ports. Names that were rebound to this machine are refused.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

HEADER = "X-Grid-Signer"
MOST_SESSIONS = 16
OWN_HOST = re.compile(r"127(\.[0-9]{1,3}){3}(:[0-9]{1,5})?")
NO_SESSION = "This page has no session. Open the newest address that `dps web` has printed."
NOT_THIS_NAME = "This server has no such name. Open the newest address that `dps web` has printed."

logger = logging.getLogger(__name__)


class Denied(Exception):
    """The request is refused, because its page has no session or it is malformed. `status` is the answer's."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status

    def answer(self) -> JSONResponse:
        return JSONResponse({"error": str(self)}, self.status, headers={"Cache-Control": "no-store"})


class Access:
    """The token and the sessions. `renewed` is called with each fresh token, including the first one."""

    def __init__(self, renewed: Callable[[str], None] = lambda _token: None) -> None:
        self._renewed = renewed
        self._token = ""
        self._sessions: dict[bytes, str] = {}  # origins by digests of secrets
        self._renew()

    def exchange(self, request: Request, token: str) -> str:
        """Return the secret of a session for a one-time token, which is used up by this. Raises Denied."""
        self._require_page(request)
        if not hmac.compare_digest(token.encode(errors="replace"), self._token.encode()):
            logger.warning("the signer refused a token: it was used before, or is wrong")
            raise Denied(403, "This address was used before. Take the newest one that `dps web` has printed.")
        secret = secrets.token_urlsafe(32)
        self._sessions[_digest(secret)] = origin_of(request)
        if len(self._sessions) > MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        logger.info("the signer opened a session for a page: sessions=%d", len(self._sessions))
        self._renew()
        return secret

    def require(self, request: Request) -> None:
        """Raise Denied unless the request is of our page, with a session of its origin."""
        self._require_page(request)
        if self._sessions.get(_digest(request.headers.get(HEADER, ""))) != origin_of(request):
            raise Denied(401, NO_SESSION)

    def end(self) -> None:
        """End all sessions, and the token. None is opened any more."""
        self._sessions.clear()
        self._token = secrets.token_urlsafe(32)

    def _require_page(self, request: Request) -> None:
        if not is_own_host(request.headers.get("host", "")):
            raise Denied(403, "The signer answers at this machine's own address only.")
        if request.headers.get("origin") != origin_of(request):
            raise Denied(403, "The signer answers pages of its own address only.")
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise Denied(403, "The signer answers pages of its own address only.")

    def _renew(self) -> None:
        self._token = secrets.token_urlsafe(32)
        self._renewed(self._token)


def origin_of(request: Request) -> str:
    """Return the origin of our page as the browser names it. `dps web` speaks plain HTTP on loopback."""
    return f"http://{request.headers.get('host', '')}"


def is_own_host(host: str) -> bool:
    """Return whether a Host header names this machine by an IPv4 loopback address, at any port.

    Names are refused: for `localhost`, browsers try ::1 first, where another account may listen at the same port.
    """
    return OWN_HOST.fullmatch(host) is not None


class LoopbackHosts:
    """Middleware: refuses other Host headers, such as a name that was rebound to this machine, and foreign pages."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            hosts, origins = (
                [value.decode("latin-1") for name, value in scope["headers"] if name == wanted]
                for wanted in (b"host", b"origin")
            )
            if len(hosts) != 1 or not is_own_host(hosts[0]):
                await Denied(421, NOT_THIS_NAME).answer()(scope, receive, send)
                return
            if origins not in ([], [f"http://{hosts[0]}"]):
                await Denied(403, "This address serves its own page only.").answer()(scope, receive, send)
                return
        await self._app(scope, receive, send)


class GuardedPaths:
    """Middleware: checks files and reads the chain for sessions only.

    A check reads modules with the customer's credentials. Reads of the chain use the customer's share of a node.
    """

    PATHS = frozenset({"/v1/check", "/rpc"})

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] in self.PATHS:
            try:
                self._access.require(Request(scope))
            except Denied as denied:
                await denied.answer()(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _digest(value: str) -> bytes:
    return hashlib.sha256(value.encode()).digest()
