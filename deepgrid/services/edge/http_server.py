"""Serves an application over HTTP by uvicorn while a context lasts."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import uvicorn
from starlette.types import ASGIApp

MAX_MESSAGE = 64 * 1024  # of a WebSocket


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, which would end the process before its connections and store are closed."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        await self._tasks_end()  # they are cancelled now
        for connection in list(self.server_state.connections):  # accepted meanwhile: their requests would come later
            connection.transport.abort()
        await self._tasks_end()

    async def _tasks_end(self) -> None:
        """Wait for the requests: they must end before their store is closed."""
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=self.config.timeout_graceful_shutdown)


@contextlib.asynccontextmanager
async def serving_http(
    app: ASGIApp, listeners: list[socket.socket], stop_within_s: int, **settings: Any
) -> AsyncIterator[None]:
    """Serve `app` at these sockets. At the end, requests are cut off after `stop_within_s`.

    `settings` are further ones of uvicorn.
    """
    settings |= {"lifespan": "off", "log_config": None, "server_header": False}
    settings |= {"ws": "websockets-sansio", "ws_max_size": MAX_MESSAGE, "ws_per_message_deflate": False}
    server = _Server(uvicorn.Config(app, timeout_graceful_shutdown=stop_within_s, **settings))
    serving = asyncio.create_task(server.serve(sockets=listeners))
    try:
        yield
    finally:
        server.should_exit = True
        await serving
