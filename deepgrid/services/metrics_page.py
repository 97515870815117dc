"""Metrics for Prometheus, at `/metrics` of a port of their own on the loopback interface."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

HOST = "127.0.0.1"

logger = logging.getLogger(__name__)


@asynccontextmanager
async def metrics_page(registry: CollectorRegistry, port: int) -> AsyncIterator[None]:
    """Serve the page while the context lasts. Port 0 means no page; a port in use causes only a warning."""
    if not port:
        yield
        return

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    pages = web.Application()
    pages.add_routes([web.get("/metrics", metrics)])
    runner = web.AppRunner(pages, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, HOST, port).start()
        except OSError as error:
            logger.warning("cannot serve metrics at %s:%d, going on without: %s", HOST, port, error.strerror or error)
        yield
    finally:
        await runner.cleanup()
