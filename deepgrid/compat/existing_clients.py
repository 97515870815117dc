"""Serves the protocols of existing clients in front of the services."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from deepgrid.compat import logger_api
from deepgrid.compat.compat_context import CompatContext, CompatSettings
from deepgrid.compat.graphql import routes as graphql
from deepgrid.compat.graphql.routes import GRAPHQL_PATH, Examiner
from deepgrid.services.admission import Gate
from deepgrid.services.app import add_error_handlers
from deepgrid.services.context import Context
from deepgrid.services.service_metrics import Measured

LOGGER_PREFIX = "/logger."
METHODS = ("GET", "PUT", "DELETE", "POST", "OPTIONS")
GRAPHQL_HEADERS = ("Accept", "Content-Type")
USUAL_HEADERS = ("keep-alive", "user-agent", "cache-control", "content-type", "content-transfer-encoding")
GRPC_HEADERS = ("x-accept-content-transfer-encoding", "x-accept-response-streaming", "x-user-agent", "x-grpc-web")
LOGGER_HEADERS = (*USUAL_HEADERS, *GRPC_HEADERS, "grpc-timeout", "authorization")
GRAPHQL: dict[str, Any] = {"allow_origin_regex": r"https?://.+", "allow_headers": GRAPHQL_HEADERS, "max_age": 300}
LOGGER: dict[str, Any] = {"allow_origins": ["*"], "allow_headers": LOGGER_HEADERS, "max_age": 1_728_000}
LOGGER["expose_headers"] = ["grpc-status", "grpc-message"]
PATHS = frozenset({GRAPHQL_PATH, "/", "/health"})


class CrossOrigin:
    """ASGI middleware: CORS headers for these paths, even on refusals. Credentials are never allowed."""

    def __init__(self, app: ASGIApp) -> None:
        allow = partial(CORSMiddleware, app, allow_methods=METHODS)
        self._app, self._graphql, self._logger = app, allow(**GRAPHQL), allow(**LOGGER)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        logger = self._logger if path.startswith(LOGGER_PREFIX) else self._app
        await (self._graphql if path == GRAPHQL_PATH else logger)(scope, receive, send)


class ExistingClients:
    """ASGI application that answers existing clients, and passes other requests on to `inner`."""

    def __init__(self, inner: ASGIApp, compat: CompatContext, examiner: Examiner) -> None:
        self._inner, self.compat = inner, compat
        self._own = FastAPI(title="existing clients", openapi_url=None)
        self._own.state.context, self._own.state.compat = compat.services, compat
        self._own.state.examiner = examiner
        self._own.add_middleware(Gate, admission=compat.admission)
        self._own.add_middleware(CrossOrigin)
        self._own.add_middleware(Measured, metrics=compat.services.metrics)
        for router in (graphql.router, logger_api.router):
            self._own.include_router(router)
        add_error_handlers(self._own)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        ours = path in PATHS or path.startswith(LOGGER_PREFIX)
        await (self._own if ours else self._inner)(scope, receive, send)


@contextlib.asynccontextmanager
async def serving_existing_clients(
    services: FastAPI, grpc: socket.socket | None, settings: CompatSettings
) -> AsyncIterator[ExistingClients]:
    """Yield the application of `open_services`, wrapped so that it also serves existing clients.

    `grpc` is the listening socket of the log service over gRPC, for a proxy; None serves gRPC-web only.
    """
    context = services.state.context
    assert isinstance(context, Context)
    compat, examiner = CompatContext(context, settings), Examiner(settings.limits)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(examiner.pool.close)
        if grpc is not None:
            await stack.enter_async_context(logger_api.serving_grpc(compat, grpc))
        yield ExistingClients(services, compat, examiner)
