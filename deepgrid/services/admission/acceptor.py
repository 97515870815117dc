"""Accepts connections within the limits per source address and in total, and passes them to a protocol."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable

from deepgrid.errors import ConfigurationError
from deepgrid.services.admission import Connections
from deepgrid.services.admission.connections import Connection

BACKLOG = 512

logger = logging.getLogger(__name__)


def bound(host: str, port: int, who: str) -> socket.socket:
    """A listening socket. Raises ConfigurationError with `who` as the subject, such as "The services"."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigurationError(f"{who} cannot listen at {host}:{port}: {error.strerror}.") from None
    listener.setblocking(False)
    return listener


class Acceptor:
    """Accepts connections from a listening socket. Connections in their TLS handshake count, too.

    The protocol leaves `connections` when its connection is lost.
    """

    def __init__(
        self,
        listener: socket.socket,
        connections: Connections,
        protocol: Callable[[Connection], asyncio.Protocol],
        context: ssl.SSLContext | None,
        handshake_within_s: float,
    ) -> None:
        self._listener = listener
        self._open = connections
        self._protocol = protocol
        self._context = context
        self._timeouts = {"ssl_handshake_timeout": handshake_within_s} if context else {}
        self._opening: set[asyncio.Task[None]] = set()
        self._accepting = asyncio.create_task(self._accept())

    async def stop(self) -> None:
        """Accept no more. Connections whose protocol has begun go on."""
        for task in (self._accepting, *self._opening):
            task.cancel()
        await asyncio.gather(self._accepting, *self._opening, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(self._listener)
            except OSError as error:  # the peer is gone, or too many files are open
                logger.warning("a connection could not be accepted: %s", error.strerror)
                await asyncio.sleep(0.1)
                continue
            connection = self._open.enter(peer[0])
            if connection is None:
                accepted.close()
                continue
            task = loop.create_task(self._talk(accepted, connection))
            connection.close = task.cancel
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _talk(self, accepted: socket.socket, connection: Connection) -> None:
        """Pass the connection to its protocol, after the TLS handshake if there is one."""
        try:
            with contextlib.suppress(OSError):  # the handshake failed or took too long
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: self._protocol(connection), accepted, ssl=self._context, **self._timeouts
                )
                return
            self._refuse(accepted, connection)
        except asyncio.CancelledError:
            self._refuse(accepted, connection)
            raise

    def _refuse(self, accepted: socket.socket, connection: Connection) -> None:
        self._open.leave(connection)
        accepted.close()
