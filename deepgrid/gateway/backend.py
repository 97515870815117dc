"""The web app in front of another application: pages, relay, grid description and checks. All other requests are
forwarded. It has its own limits. Open pages that share one address never count at the services' `Gate`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from deepgrid.chain.book import AddressBook
from deepgrid.gateway.answering import send_json
from deepgrid.gateway.check import Checks
from deepgrid.gateway.pages import Pages
from deepgrid.gateway.relay import Relay
from deepgrid.gateway.settings import WebSettings

READING = ("GET", "HEAD")
SHOWN_LIMITS = ("check_bytes", "calls_per_batch", "answer_bytes", "batch_bytes", "log_blocks", "blocks_back")


def grid_info(book: AddressBook, settings: WebSettings, build: str | None) -> dict[str, Any]:
    """Return what a page knows about its grid.

    `build` is the hash of the inputs of the web app's build, if there is one.
    """
    found = book.model_dump(include={"chain_id", "credit", "meta_scheduler", "provider_manager", "first_block"})
    found |= {"services": {"version": _version()}, "build": build}
    found |= {"local": settings.local, "modules": settings.local, "transactions": settings.transactions}
    found["limits"] = {name: limit for name, limit in asdict(settings.limits).items() if name in SHOWN_LIMITS}
    prefect_url = settings.prefect_url or book.prefect_ui_url
    services_url = book.definitions_url if settings.local else ""  # links for others do not lead to this machine
    urls = {"node_url": settings.node_url, "prefect_url": prefect_url, "services_url": services_url}
    return found | {name: url for name, url in urls.items() if url}


def _version() -> str:
    try:
        return version("deepgrid")
    except PackageNotFoundError:
        return ""


class WebApp:
    """ASGI application of the web app before `inner`. `open_web` makes it."""

    def __init__(self, inner: ASGIApp, book: AddressBook, settings: WebSettings, relay: Relay, checks: Checks) -> None:
        self._inner, self._book, self._settings = inner, book, settings
        self.relay, self._checks = relay, checks
        self._pages = Pages(settings.static)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        if path == "/rpc":
            await self.relay.answer(scope, receive, send)
        elif path == "/v1/check":
            await self._checks.answer(scope, receive, send)
        elif path == "/v1/grid" and scope["method"] in READING:
            await send_json(send, 200, grid_info(self._book, self._settings, self._pages.build))
        elif scope["type"] == "http" and scope["method"] in READING and self._pages.has(path):
            await self._pages.answer(scope, send)
        else:
            await self._inner(scope, receive, send)


@contextlib.asynccontextmanager
async def open_web(inner: ASGIApp, book: AddressBook, settings: WebSettings) -> AsyncIterator[WebApp]:
    """Yield the web app of the grid of `book` before `inner`, with its connection to the node."""
    async with contextlib.AsyncExitStack() as stack:
        relay, checks = Relay(book, settings), Checks(settings)
        stack.push_async_callback(relay.close)
        stack.push_async_callback(checks.pool.close)
        yield WebApp(inner, book, settings, relay, checks)
