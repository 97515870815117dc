"""Serves the web app on this machine, for one customer, with the local signer (`dps web`)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import signal
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from starlette.routing import Route
from starlette.types import ASGIApp

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import ConfigurationError
from deepgrid.files.private_files import replace_file
from deepgrid.gateway.backend import open_web
from deepgrid.gateway.settings import WebSettings
from deepgrid.services.client import ServicesClient
from deepgrid.services.edge.http_server import serving_http
from deepgrid.signer.access import Access, GuardedPaths, LoopbackHosts
from deepgrid.signer.forwards import Forwards
from deepgrid.signer.http_endpoint import PageStorage, signer_app
from deepgrid.signer.limit import SpendingLimit
from deepgrid.signer.peer import OwnAccount
from deepgrid.signer.reverse_proxy import ReverseProxy
from deepgrid.signer.signer import Signer

HOST = "127.0.0.1"
STOP_WITHIN_S = 1  # open polls of logs are cut off then; pages ask again
BACKLOG = 128

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LocalSettings:
    """Settings of `dps web`."""

    key_file: Path
    limit_wei: int  # the most that the page may lock, allow or transfer per hour
    book: Path | None = None
    port: int = 0  # 0 takes a free port
    address_file: Path | None = None  # gets the newest address with its one-time token; only its owner can read it


ShowAddress = Callable[[str], None]


@dataclass(frozen=True)
class LocalApp:
    """The ASGI application. `end` ends all sessions and answers the open polls of logs, before the server stops."""

    serve: ASGIApp
    end: Callable[[], None]


async def serve_local(settings: LocalSettings, show: ShowAddress) -> None:
    """Serve until SIGTERM or SIGINT. Each address with a fresh one-time token is written to the file, or passed to
    `show` if there is no file.

    Raises ConfigurationError (key, address book, port) and ChainError.
    """
    wallet = Wallet.load(settings.key_file)
    book = AddressBook.load(settings.book)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    listeners = _listen(settings.port)
    url = "http://{}:{}/".format(*listeners[-1].getsockname())

    def renewed(token: str) -> None:
        address = f"{url}#token={token}"
        if settings.address_file is not None:
            _write_address(settings.address_file, address)
        else:
            show(address)

    quiet = {"access_log": False, "log_level": "warning", "proxy_headers": False}
    async with (
        local_app(book, wallet, settings, renewed) as app,
        serving_http(app.serve, listeners, STOP_WITHIN_S, **quiet),
    ):
        await stop.wait()
        app.end()


@contextlib.asynccontextmanager
async def local_app(
    book: AddressBook, wallet: Wallet, settings: LocalSettings, renewed: ShowAddress
) -> AsyncIterator[LocalApp]:
    """Yield the app for the customer of `wallet`, with its connections open. `renewed` gets each one-time token."""
    async with contextlib.AsyncExitStack() as stack:
        chain = await stack.enter_async_context(await Chain.connect(book))
        sender = Sender(chain, wallet)
        stack.push_async_callback(sender.close)
        access = Access(renewed)
        signer = Signer(chain, sender, SpendingLimit(settings.limit_wei))
        services = ReverseProxy(book.definitions_url, book.authorities)
        stack.push_async_callback(services.close)
        others = Route("/v1/{rest:path}", services.answer, methods=["GET", "POST", "PUT", "DELETE"])
        tunnels = await stack.enter_async_context(ServicesClient.of(book, wallet.account))
        forwards = Forwards(chain, tunnels)
        stack.push_async_callback(forwards.close)
        storage = PageStorage(_storage_file(settings.key_file))
        inner = signer_app(signer, access, storage, forwards, others)
        web = await stack.enter_async_context(open_web(inner, book, WebSettings(local=True)))

        def end() -> None:
            access.end()  # another program may listen at this port next, and get the secrets of open pages
            services.stop()

        yield LocalApp(OwnAccount(LoopbackHosts(GuardedPaths(web, access))), end)


def _write_address(file: Path, address: str) -> None:
    """Write a file that only its owner can read: the address holds a token. Raises ConfigurationError."""
    try:
        replace_file(file, f"{address}\n".encode())
    except OSError as error:
        raise ConfigurationError(f"The address cannot be written to {file}: {error.strerror}.") from None


def _storage_file(key_file: Path) -> Path:
    return key_file.with_name(f"{key_file.name}.web.json")


def _listen(port: int) -> list[socket.socket]:
    """Return sockets at 127.0.0.1, for forwarded ports, and at a new loopback address, where no page can have been
    before.

    Other accounts can listen at any address that they can guess, and leave pages there that browsers keep.
    """
    try:
        usual = socket.create_server((HOST, port), backlog=BACKLOG)
    except OSError as error:
        raise ConfigurationError(
            f"The web app cannot listen at {HOST}:{port}: {error.strerror}.",
            next_step="Choose another port with --port, or 0 for a free one.",
        ) from None
    fresh = f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
    try:
        return [usual, socket.create_server((fresh, usual.getsockname()[1]), backlog=BACKLOG)]
    except OSError:
        logger.warning(
            "this system has one loopback address: other accounts may have left pages in your browser for it"
        )
        return [usual]
