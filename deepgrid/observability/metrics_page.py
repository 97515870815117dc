"""Metrics of a process for Prometheus, at `/metrics` of a port of their own."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

LOOPBACK = "127.0.0.1"

logger = logging.getLogger(__name__)


@asynccontextmanager
async def metrics_page(
    registry: CollectorRegistry, port: int, host: str = LOOPBACK, others: Iterable[web.RouteDef] = ()
) -> AsyncIterator[bool]:
    """Serve the metrics and other pages while the context lasts. Yields whether they are served.

    Port 0 means no page. A port in use causes only a warning.
    """
    if not port:
        yield False
        return

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    pages = web.Application()
    pages.add_routes([web.get("/metrics", metrics), *others])
    runner = web.AppRunner(pages, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
            served = True
        except OSError as error:
            logger.warning("cannot serve metrics at %s:%d, going on without: %s", host, port, error.strerror or error)
            served = False
        yield served
    finally:
        await runner.cleanup()
