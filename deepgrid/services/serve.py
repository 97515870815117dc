"""Runs the services until they are told to stop: what `dps services serve` does."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import AsyncIterator, Iterator

import uvicorn
from fastapi import FastAPI

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.errors import ConfigurationError
from deepgrid.services.app import ServicesSettings, open_services
from deepgrid.services.protocol import Domain
from deepgrid.services.script_check import require_shellcheck

KEEP_ALIVE_S = 60  # longer than clients keep a connection (httpx: 5 s), or a request meets one that is being closed
STOP_WITHIN_S = 3  # readers that wait for a log are cut off then; they ask again

logger = logging.getLogger(__name__)


async def serve(settings: ServicesSettings) -> None:
    """Serve the grid of the address book until SIGTERM or SIGINT.

    Raises ConfigurationError (the book, the database, the secret file, the port, no shellcheck) and ChainError.
    """
    require_shellcheck()
    book = AddressBook.load(settings.book)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    chain = await Chain.connect(book)
    try:
        domain = Domain(book.chain_id, book.meta_scheduler)
        async with open_services(settings, domain, chain) as app, listening(app, settings.host, settings.port) as url:
            logger.info("the services listen at %s", url)
            await stop.wait()
    finally:
        await chain.close()


@contextlib.asynccontextmanager
async def listening(app: FastAPI, host: str, port: int) -> AsyncIterator[str]:
    """Serve `app` while the context lasts; gives its URL. Port 0 takes a free one."""
    listener = _bound(host, port)
    config = uvicorn.Config(
        app, lifespan="off", log_config=None, server_header=False, timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_WITHIN_S,
    )  # fmt: skip
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, which would end the process before its store is closed."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        raise ConfigurationError(f"The services cannot listen at {host}:{port}: {error.strerror}.") from None
