"""Lets web pages of any origin use `/graphql`, and nothing else of the application."""

from __future__ import annotations

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/graphql"
PREFLIGHT_KEPT_S = 300


class CrossOrigin:
    """ASGI middleware: CORS headers for `/graphql`, also on refusals. Credentials are never allowed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._open_to_pages = CORSMiddleware(
            app, allow_origin_regex=r"https?://.+", allow_methods=["GET", "POST", "PUT", "DELETE", "OPTIONS"],
            allow_headers=["Accept", "Content-Type"], max_age=PREFLIGHT_KEPT_S,
        )  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        shared = scope["type"] == "http" and scope["path"] == PATH
        await (self._open_to_pages if shared else self._app)(scope, receive, send)
