"""Runs the services until a signal stops them (`dps services serve`)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import ssl
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.errors import ConfigurationError
from deepgrid.metrics_page import metrics_page
from deepgrid.secure_url import is_loopback
from deepgrid.services.admission import Connections, GuardedProtocol, Limits, Proxies, allow_more_files
from deepgrid.services.admission.acceptor import Acceptor, bound
from deepgrid.services.admission.connections import Connection
from deepgrid.services.app import ServicesSettings, open_services
from deepgrid.services.logger_api import serving_grpc
from deepgrid.services.script_check import require_shellcheck
from deepgrid.services.signing.request_signing import Domain

RECURSION_LIMIT = 1000  # a library of the chain raises it so far that nested JSON could crash the process
LOOPBACK = "127.0.0.1"
STOP_WITHIN_S = 3  # waiting readers of logs are disconnected then, and retry

logger = logging.getLogger(__name__)


InFront = Callable[[FastAPI, AddressBook], contextlib.AbstractAsyncContextManager[ASGIApp]]


def nothing_in_front(app: FastAPI, _book: AddressBook) -> contextlib.AbstractAsyncContextManager[ASGIApp]:
    """The services alone."""
    return contextlib.nullcontext(app)


async def serve(settings: ServicesSettings, in_front: InFront = nothing_in_front) -> None:
    """Serve the grid of the address book until SIGTERM or SIGINT.

    `in_front` makes an application that takes all requests, and hands on those of the services.

    Raises ConfigurationError (address book, database, secret file, port, certificate, clear text to other machines,
    missing shellcheck) and ChainError.
    """
    require_shellcheck()
    require_secrecy(settings)
    book = AddressBook.load(settings.book)
    allow_more_files(settings.limits.connections)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    chain = await Chain.connect(book)
    sys.setrecursionlimit(RECURSION_LIMIT)
    try:
        domain = Domain(book.chain_id, book.meta_scheduler)
        async with (
            open_services(settings, domain, chain) as app,
            metrics_page(app.state.context.metrics.registry, settings.metrics_port),
            in_front(app, book) as served,
            listening(served, settings) as url,
            listening_grpc(app, settings) as grpc_address,
        ):
            logger.info("the services listen at %s", url)
            if grpc_address:
                logger.info("the log service speaks gRPC at %s", grpc_address)
            await stop.wait()
            app.state.context.hub.stop()  # the followers get an answer, and come back to the next process
    finally:
        await chain.close()


@contextlib.asynccontextmanager
async def listening(app: Callable[..., Awaitable[None]], settings: ServicesSettings) -> AsyncIterator[str]:
    """Serve `app` while the context lasts, and yield its URL. Port 0 takes a free port."""
    proxies, limits, host = Proxies(settings.trusted_proxies), settings.limits, settings.host
    config = uvicorn.Config(
        app, lifespan="off", log_config=None, server_header=False, ws="none",
        proxy_headers=bool(proxies.names), forwarded_allow_ips=proxies.names,
        timeout_keep_alive=limits.keep_alive_s, timeout_graceful_shutdown=STOP_WITHIN_S,
    )  # fmt: skip
    config.load()
    config.ssl = tls_of(settings)
    listener = bound(host, settings.port, "The services")
    server = _Server(config, Connections(limits, proxies), limits)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    scheme = "https" if config.ssl else "http"
    try:
        yield f"{scheme}://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


@contextlib.asynccontextmanager
async def listening_grpc(app: FastAPI, settings: ServicesSettings) -> AsyncIterator[str | None]:
    """Serve the log service of `app` over gRPC for a proxy on this machine, and yield its address.

    None if the settings name no port.
    """
    if settings.grpc_port is None:
        yield None
        return
    with bound(LOOPBACK, settings.grpc_port, "The log service") as listener:
        async with serving_grpc(app.state.context, listener):
            yield f"{LOOPBACK}:{listener.getsockname()[1]}"


class _Server(uvicorn.Server):
    """uvicorn with limits on connections, also on those in their TLS handshake.

    uvicorn's signal handlers are left out, because they would end the process before its store is closed.
    """

    def __init__(self, config: uvicorn.Config, connections: Connections, limits: Limits) -> None:
        super().__init__(config)
        self._open = connections
        self._limits = limits
        self._acceptors: list[Acceptor] = []

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        self._acceptors = [
            Acceptor(listener, self._open, self._protocol, self.config.ssl, self._limits.head_within_s)
            for listener in sockets or []
        ]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for acceptor in self._acceptors:
            await acceptor.stop()
        await super().shutdown(sockets)
        if self.server_state.tasks:  # these are cancelled now, and must end before their store is closed
            await asyncio.wait(self.server_state.tasks, timeout=STOP_WITHIN_S)

    def _protocol(self, connection: Connection) -> GuardedProtocol:
        return GuardedProtocol(
            connection, lambda: self._open.leave(connection), self._limits,
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state,
        )  # fmt: skip


def require_secrecy(settings: ServicesSettings) -> None:
    """Refuse to accept definitions, which hold secrets, in clear text from other machines, or to show them there."""
    if settings.debug_scripts and (settings.trusted_proxies or not is_loopback(settings.host)):
        raise ConfigurationError(
            "With --debug-scripts, anybody who reaches the services could read the secrets of jobs.",
            next_step="Listen at 127.0.0.1, without a proxy, or leave out --debug-scripts.",
        )
    if settings.tls_cert or settings.trusted_proxies or settings.allow_plain_http or is_loopback(settings.host):
        return
    raise ConfigurationError(
        f"At {settings.host} the services would receive secrets in clear text.",
        next_step="Give --tls-cert and --tls-key, or --trusted-proxy for a proxy that does TLS in front.",
    )


def tls_of(settings: ServicesSettings) -> ssl.SSLContext | None:
    """The TLS context of the settings' certificate; None without one. Raises ConfigurationError."""
    certificate, key = settings.tls_cert, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ConfigurationError(
            "TLS needs both a certificate and its key.", next_step="Give --tls-cert and --tls-key."
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if key.stat().st_mode & stat.S_IRWXO:
            raise ConfigurationError(f"Others may read the TLS key {key}.", next_step=f"Run `chmod o= {key}`.")
        context.load_cert_chain(certificate, key, password="")  # an encrypted key is refused, without a prompt
    except OSError as error:  # ssl.SSLError is one
        reason = error.strerror or "it is not a PEM certificate with its key"
        raise ConfigurationError(f"The TLS certificate {certificate} and key {key} cannot be used: {reason}.") from None
    return context
