"""Forwards requests of the page unchanged to the grid's services, so that their signatures stay valid. Cookies stay
here: browsers send the cookies of all ports of this machine. The secret of the local signer's session stays here too.
Origin is forwarded, because the services' sessions name theirs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import httpx
from starlette.background import BackgroundTask
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from deepgrid.safe_http import is_loopback, tls_of

TIMEOUT_S = 60.0  # the services hold a poll of a log for up to 25 s
CONNECT_WITHIN_S = 10.0
LARGEST_BODY = 8 * 1024 * 1024

# Headers of one connection or of this host, and headers that are set again.
_DROPPED = (
    "host connection keep-alive proxy-authenticate proxy-authorization te trailer upgrade transfer-encoding"
    " content-length cookie set-cookie referer date server x-grid-signer"
)
DROPPED = frozenset(_DROPPED.split())

logger = logging.getLogger(__name__)


class _Stopped(Exception):
    """The web app stops."""


class ReverseProxy:
    """Hands requests on to the services at `base_url`. Close it with `close`."""

    def __init__(self, base_url: str, authorities: str | None = None) -> None:
        self._base = base_url.rstrip("/")
        at_home = is_loopback(httpx.URL(base_url).host)
        limits = httpx.Limits(max_connections=200, max_keepalive_connections=20)
        timeout = httpx.Timeout(TIMEOUT_S, connect=CONNECT_WITHIN_S)
        self._http = httpx.AsyncClient(
            timeout=timeout, limits=limits, trust_env=not at_home, verify=tls_of(base_url, authorities)
        )
        self._silent = False
        self._asked: set[asyncio.Task[httpx.Response]] = set()
        self._stopped = False

    async def answer(self, request: Request) -> Response:
        try:
            body = await _body(request)
        except ClientDisconnect:
            return Response(status_code=400)
        if body is None:
            return JSONResponse({"error": "the request is too large"}, 413)
        query = request.scope["query_string"].decode("latin-1")
        path = request.scope["raw_path"].decode("latin-1").removeprefix(request.scope.get("root_path", ""))
        url = f"{self._base}{path}" + (f"?{query}" if query else "")
        headers = [(name, value) for name, value in request.headers.items() if name not in DROPPED]
        try:
            asked = self._http.build_request(request.method, url, headers=headers, content=body)
            theirs = await self._send(asked)
        except _Stopped:
            return JSONResponse({"error": "the web app stops"}, 503)
        except (httpx.HTTPError, httpx.InvalidURL):
            self._note(silent=True)
            return JSONResponse({"error": "the grid's services do not answer"}, 502)
        self._note(silent=False)
        kept = {name: value for name, value in theirs.headers.items() if name not in DROPPED}
        return StreamingResponse(
            _raw_body(theirs), theirs.status_code, headers=kept, background=BackgroundTask(theirs.aclose)
        )

    def stop(self) -> None:
        """Answer the open polls of logs now, and every later request, with 503."""
        self._stopped = True
        for one in self._asked:
            one.cancel()

    async def close(self) -> None:
        await self._http.aclose()

    async def _send(self, asked: httpx.Request) -> httpx.Response:
        """Return the answer, without its body yet. Raises _Stopped."""
        if self._stopped:
            raise _Stopped
        task = asyncio.create_task(self._http.send(asked, stream=True))
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        try:
            return await task
        except asyncio.CancelledError:
            if self._stopped:
                raise _Stopped from None
            task.cancel()
            raise

    def _note(self, *, silent: bool) -> None:
        """Log the begin and the end of an outage, once each."""
        if silent and not self._silent:
            logger.warning("the services do not answer, trying again with each request: %s", self._base)
        if self._silent and not silent:
            logger.info("the services answer again: %s", self._base)
        self._silent = silent


async def _body(request: Request) -> bytes | None:
    """Return the body of the request; None if it is too large."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > LARGEST_BODY:
            return None
    return bytes(content)


async def _raw_body(answer: httpx.Response) -> AsyncIterator[bytes]:
    """Yield the answer's body as it came, compressed or not."""
    try:
        async for part in answer.aiter_raw():
            yield part
    finally:
        await answer.aclose()
