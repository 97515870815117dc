"""Mounts what existing clients speak in front of the services."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from deepgrid.compat import graphql, logger_api
from deepgrid.compat.compat_context import CompatContext
from deepgrid.compat.cross_origin import GRAPHQL_PATH, LOGGER_PREFIX, CrossOrigin
from deepgrid.compat.graphql.examiner import Examiner
from deepgrid.compat.settings import CompatSettings
from deepgrid.services.admission import Gate
from deepgrid.services.app import HANDLERS
from deepgrid.services.context import Context
from deepgrid.services.service_metrics import Measured

PATHS = frozenset({GRAPHQL_PATH, "/", "/health"})


class ExistingClients:
    """ASGI application that answers existing clients, and hands the rest on to `inner`."""

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
        for kind, handler in HANDLERS.items():
            self._own.add_exception_handler(kind, handler)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        ours = path in PATHS or path.startswith(LOGGER_PREFIX)
        await (self._own if ours else self._inner)(scope, receive, send)


@contextlib.asynccontextmanager
async def serving_existing_clients(
    services: FastAPI, grpc: socket.socket | None, settings: CompatSettings
) -> AsyncIterator[ExistingClients]:
    """The services' application with its front for existing clients.

    Args:
        services: The application that `open_services` yields.
        grpc: Listening socket of the log service over gRPC, for a proxy; None serves gRPC-web only.
        settings: What is done for such clients.
    """
    context = services.state.context
    assert isinstance(context, Context)
    compat, examiner = CompatContext(context, settings), Examiner(settings.limits)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(examiner.pool.close)
        if grpc is not None:
            await stack.enter_async_context(logger_api.serving_grpc(compat, grpc))
        yield ExistingClients(services, compat, examiner)
