"""Runs the services until a signal stops them (`dps services serve`)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Callable

from fastapi import FastAPI
from starlette.types import ASGIApp

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.errors import ConfigurationError
from deepgrid.observability.metrics_page import metrics_page
from deepgrid.services.app import ServicesSettings, open_services
from deepgrid.services.edge.http_server import serving_http
from deepgrid.services.edge.listeners import Listeners, address_of, open_listeners
from deepgrid.services.script_check import require_shellcheck
from deepgrid.services.signing.request_signing import Domain

RECURSION_LIMIT = 1000  # a library of the chain raises it so far that nested JSON could crash the process
STOP_WITHIN_S = 3  # waiting readers of logs are disconnected then, and retry
KEEP_ALIVE_S = 75  # longer than the proxy's 60 s, or a request may meet a closing connection

logger = logging.getLogger(__name__)


ExistingClients = Callable[[FastAPI, socket.socket | None], contextlib.AbstractAsyncContextManager[ASGIApp]]
InFront = Callable[[ASGIApp, AddressBook], contextlib.AbstractAsyncContextManager[ASGIApp]]


def nothing_in_front(app: ASGIApp, _: object) -> contextlib.AbstractAsyncContextManager[ASGIApp]:
    """Return the services alone."""
    return contextlib.nullcontext(app)


async def serve(
    settings: ServicesSettings, in_front: InFront = nothing_in_front, existing_clients: ExistingClients | None = None
) -> None:
    """Serve the grid of the address book until SIGTERM or SIGINT.

    `in_front` makes an application that takes all requests, and passes on what is for the services. `existing_clients`
    does the same behind it, and serves gRPC; without it, there is no socket for that.

    Raises ConfigurationError (address book, database, secret file, sockets, missing shellcheck) and ChainError.
    """
    require_shellcheck()
    require_secrecy(settings)
    book = AddressBook.load(settings.book)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    chain = await Chain.connect(book)
    sys.setrecursionlimit(RECURSION_LIMIT)
    try:
        domain = Domain(book.chain_id, book.meta_scheduler)
        with open_listeners(settings, with_grpc=existing_clients is not None) as listeners:
            async with (
                open_services(settings, domain, chain) as app,
                metrics_page(app.state.context.metrics.registry, settings.metrics_port),
                (existing_clients or nothing_in_front)(app, listeners.grpc) as with_existing,
                in_front(with_existing, book) as served,
                listening(served, listeners),
            ):
                log_where(listeners)
                await stop.wait()
                app.state.context.log_tails.stop()  # the followers get an answer, and come back to the next process
    finally:
        await chain.close()


def listening(app: ASGIApp, listeners: Listeners) -> contextlib.AbstractAsyncContextManager[None]:
    """Serve `app` over HTTP while the context lasts."""
    proxy = {"proxy_headers": listeners.are_behind_proxy, "forwarded_allow_ips": "*"}  # only the proxy opens the socket
    return serving_http(app, [listeners.http], STOP_WITHIN_S, timeout_keep_alive=KEEP_ALIVE_S, **proxy)


def log_where(listeners: Listeners) -> None:
    """Log where the services listen."""
    where = address_of(listeners.http)
    if listeners.are_behind_proxy:
        logger.info("the services listen for their proxy at %s", where)
        return
    logger.info("the services listen at http://%s", where)
    logger.warning("no proxy in front: for use on this machine only, without limits per address")
    if listeners.grpc is not None:
        logger.info("the log service speaks gRPC at %s", address_of(listeners.grpc))


def require_secrecy(settings: ServicesSettings) -> None:
    """Refuse to show definitions, which hold secrets, to other machines."""
    if settings.debug_scripts and settings.sockets is not None:
        raise ConfigurationError(
            "With --debug-scripts, anybody who reaches the services could read the secrets of jobs.",
            next_step="Listen at a port of this machine, without a proxy, or leave out --debug-scripts.",
        )
