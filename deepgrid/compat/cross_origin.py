"""Lets web pages of any origin use GraphQL and the log service, and nothing else of the application."""

from __future__ import annotations

from typing import Any

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

GRAPHQL_PATH, LOGGER_PREFIX = "/graphql", "/logger."
METHODS = ("GET", "PUT", "DELETE", "POST", "OPTIONS")
GRAPHQL: dict[str, Any] = {
    "allow_origin_regex": r"https?://.+", "allow_methods": METHODS, "allow_headers": ["Accept", "Content-Type"],
    "max_age": 300,
}  # fmt: skip
LOGGER: dict[str, Any] = {
    "allow_origins": ["*"], "allow_methods": METHODS, "expose_headers": ["grpc-status", "grpc-message"],
    "allow_headers": [
        "keep-alive", "user-agent", "cache-control", "content-type", "content-transfer-encoding",
        "x-accept-content-transfer-encoding", "x-accept-response-streaming", "x-user-agent", "x-grpc-web",
        "grpc-timeout", "authorization",
    ],
    "max_age": 1_728_000,
}  # fmt: skip


class CrossOrigin:
    """ASGI middleware: CORS headers for these paths, also on refusals. Credentials are never allowed."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._graphql, self._logger = app, CORSMiddleware(app, **GRAPHQL), CORSMiddleware(app, **LOGGER)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        logger = self._logger if path.startswith(LOGGER_PREFIX) else self._app
        await (self._graphql if path == GRAPHQL_PATH else logger)(scope, receive, send)
