"""Connections under bounds: how many are open, and how long one may take for a request's head or an answer."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import resource
from collections.abc import Callable, Collection, Sequence
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from deepgrid.errors import ConfigurationError
from deepgrid.services.admission.limits import Limits, source_of

FILES_FOR_OTHERS = 128  # descriptors that are no connections: the database, checkers, the chain's node
MOST_PIPELINED = 8

logger = logging.getLogger(__name__)


class Proxies:
    """The proxies whose X-Forwarded-For counts: addresses and networks. Nobody by default."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        """Raises ConfigurationError for what is no address and no network, as `*` is."""
        self.names = list(names)
        try:
            self._networks = [ipaddress.ip_network(name) for name in names]
        except ValueError as error:
            raise ConfigurationError(
                f"A trusted proxy is not an IP address or network: {error}.",
                next_step="Name the proxy as 10.0.0.5 or 10.0.0.0/24.",
            ) from None

    def __contains__(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


class Connection:
    """One connection of a source address; `close` ends it at once."""

    def __init__(self, source: str, trusted: bool) -> None:
        self.source, self.trusted = source, trusted
        self.idle = True  # waits for a request's head, or is still in the TLS handshake
        self.close: Callable[[], object] = lambda: None


class Connections:
    """The open connections, bounded for each source address and in total.

    Where there are too many, the oldest idle one of that address, or of the address that has most, is
    closed. Trusted proxies count in total only: their connections are many people's.
    """

    def __init__(self, limits: Limits, proxies: Proxies) -> None:
        self._proxies = proxies
        self._per_address = limits.connections_per_address
        self._total = min(limits.connections, _most_files() - FILES_FOR_OTHERS)
        if self._total < limits.connections:
            logger.warning("at most %d connections, as the process may open few files", self._total)
        self._by_source: dict[str, dict[Connection, None]] = {}
        self.count = 0

    def enter(self, host: str) -> Connection | None:
        """A new connection from `host`; None when there is no room for it."""
        trusted = host in self._proxies
        source = source_of(host)
        own = self._by_source.get(source, {})
        if not trusted and len(own) >= self._per_address and not self._evict(own):
            return None
        if self.count >= self._total and not self._evict_from_the_busiest():
            return None
        connection = Connection(source, trusted)
        self._by_source.setdefault(source, {})[connection] = None
        self.count += 1
        return connection

    def leave(self, connection: Connection) -> None:
        """The connection was closed; may be told more than once."""
        own = self._by_source.get(connection.source, {})
        if connection not in own:
            return
        del own[connection]
        self.count -= 1
        if not own:
            del self._by_source[connection.source]

    def _evict_from_the_busiest(self) -> bool:
        return any(self._evict(own) for own in sorted(self._by_source.values(), key=len, reverse=True))

    def _evict(self, own: Collection[Connection]) -> bool:
        """Close the oldest of these that is idle."""
        oldest = next((connection for connection in own if connection.idle and not connection.trusted), None)
        if oldest is None:
            return False
        self.leave(oldest)
        oldest.close()
        return True


def _most_files() -> int:
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return FILES_FOR_OTHERS + 2**20 if soft == resource.RLIM_INFINITY else max(soft, FILES_FOR_OTHERS + 16)


def allow_more_files(wanted: int) -> None:
    """Raise this process's limit of open files to what `wanted` connections need, as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = wanted + FILES_FOR_OTHERS
    if soft != resource.RLIM_INFINITY and soft < enough:
        most = enough if hard == resource.RLIM_INFINITY else min(enough, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


class HeadTooLarge(Exception):
    """A request's head exceeds its bound. The parser answers it with status 400."""


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with a deadline and a size for each head, and a deadline for clients to take an answer.

    uvicorn bounds none of these: a client that sends half a head, or never reads, would stay for ever.
    """

    def __init__(self, connection: Connection, left: Callable[[], None], limits: Limits, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._connection = connection
        self._left = left
        self._limits = limits
        self._deadline: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._in_body = False  # also of one that was answered before it was complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._connection.close = transport.abort
        self._abort_in(self._limits.head_within_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self._left()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._connection.idle:
            self._head_bytes += 0 if self._in_body else len(data)
            if self._deadline is None:
                self._abort_in(self._limits.head_within_s)
        super().data_received(data)
        if self._connection.idle and self._head_bytes > self._limits.head_bytes:
            self.transport.abort()

    def on_message_begin(self) -> None:
        self._message_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MOST_PIPELINED:
            raise HeadTooLarge
        self._connection.idle = False
        self._head_bytes, self._in_body = 0, True
        self._disarm()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._abort_in(self._limits.answer_within_s)  # the client may never take what is still to be sent
        elif self.cycle.response_complete:
            self._connection.idle = True

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        super().send_400_response(msg)
        self._abort_in(self._limits.head_within_s)

    def _count(self, amount: int) -> None:
        """Bytes of a head, or of trailers after a body."""
        self._message_bytes += amount
        if self._message_bytes > self._limits.head_bytes:
            raise HeadTooLarge

    def _abort_in(self, seconds: float) -> None:
        self._disarm()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
