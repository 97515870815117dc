"""Admits callers of the signer: only the page of its own address, whose user has opened the printed address.

The address holds a one-time token in its fragment, which browsers do not send. The page exchanges it once for a
cookie that scripts cannot read and that other sites' requests do not carry. Host, Origin and a custom header are
checked too. So neither another site, nor a name that was rebound to this machine, nor another user can call.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from deepgrid.secure_url import is_loopback

HEADER = "X-Grid-Signer"
MOST_SESSIONS = 16
NO_SESSION = "This page has no session. Open the newest address that `dps web` has printed."

logger = logging.getLogger(__name__)


class Denied(Exception):
    """The request does not come from the page of this address. `status` is that of the answer."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Access:
    """The token and the sessions. `renewed` is called with each fresh token, also with the first one."""

    def __init__(self, cookie: str, renewed: Callable[[str], None] = lambda _token: None) -> None:
        self.cookie = cookie
        self._renewed = renewed
        self._token = ""
        self._sessions: dict[bytes, None] = {}
        self._visitors: dict[bytes, None] = {}
        self._renew()

    def exchange(self, request: Request, token: str) -> tuple[str, str]:
        """The values of two cookies for a one-time token, which is worth nothing from now on. Raises Denied.

        The first one admits to the signer, the second one to checks of files, at every path.
        """
        self._require_page(request)
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            logger.warning("the signer refused a token: it was used before, or is wrong")
            raise Denied(403, "This address was used before. Take the newest one that `dps web` has printed.")
        values = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        for value, known in zip(values, (self._sessions, self._visitors), strict=True):
            known[_digest(value)] = None
            while len(known) > MOST_SESSIONS:
                del known[next(iter(known))]
        logger.info("the signer opened a session for a page: sessions=%d", len(self._sessions))
        self._renew()
        return values

    def require(self, request: Request) -> None:
        """Raise Denied unless the request is of our page, with a session."""
        self._require_page(request)
        if _digest(request.cookies.get(self.cookie, "")) not in self._sessions:
            raise Denied(401, NO_SESSION)

    @property
    def visitor_cookie(self) -> str:
        """Name of the cookie that admits to checks."""
        return f"{self.cookie}-visitor"

    def knows(self, request: Request) -> bool:
        """Whether a session of this process sends the request, to any path."""
        return _digest(request.cookies.get(self.visitor_cookie, "")) in self._visitors

    def _require_page(self, request: Request) -> None:
        if not is_own_host(request.headers.get("host", "")):
            raise Denied(403, "The signer answers at this machine's own address only.")
        if request.headers.get("origin") != origin_of(request):
            raise Denied(403, "The signer answers pages of its own address only.")
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise Denied(403, "The signer answers pages of its own address only.")
        if request.headers.get(HEADER) != "1":
            raise Denied(403, f"The header {HEADER} is missing.")

    def _renew(self) -> None:
        self._token = secrets.token_urlsafe(32)
        self._renewed(self._token)


def origin_of(request: Request) -> str:
    """The origin of our page as the browser names it. `dps web` speaks plain HTTP on loopback."""
    return f"http://{request.headers.get('host', '')}"


def is_own_host(host: str) -> bool:
    """Whether a Host header names this machine by a loopback address or `localhost`, at any port."""
    try:
        parts = urlsplit(f"http://{host}")
        return parts.netloc == host and parts.username is None and is_loopback(parts.hostname or "")
    except ValueError:
        return False


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
                await _refuse(421, "This address serves this machine only.")(scope, receive, send)
                return
            if origins not in ([], [f"http://{hosts[0]}"]):
                await _refuse(403, "This address serves its own page only.")(scope, receive, send)
                return
        await self._app(scope, receive, send)


class GuardedChecks:
    """Middleware: checks only files of sessions, because a check reads modules with the customer's credentials."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/v1/check" and not self._access.knows(Request(scope)):
            await _refuse(401, NO_SESSION)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _refuse(status: int, sentence: str) -> JSONResponse:
    return JSONResponse({"error": sentence}, status)


def _digest(value: str) -> bytes:
    return hashlib.sha256(value.encode()).digest()
