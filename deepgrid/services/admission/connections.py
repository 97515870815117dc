"""Limits on connections: their number, the time and size of a request's head, and the time to take an answer."""

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

FILES_FOR_OTHERS = 128  # file descriptors for other uses: the database, checkers, the chain's node
MOST_PIPELINED = 8

logger = logging.getLogger(__name__)


class Proxies:
    """The proxies whose X-Forwarded-For is trusted: addresses and networks. None by default."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        """Raises ConfigurationError for a name that is neither an address nor a network, such as `*`."""
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
    """One connection from a source address. `close` ends it at once."""

    def __init__(self, source: str, trusted: bool) -> None:
        self.source, self.trusted = source, trusted
        self.idle = True  # waiting for a request's head, or still in the TLS handshake
        self.close: Callable[[], object] = lambda: None


class Connections:
    """The open connections, limited per source address and in total.

    Above a limit, the oldest idle connection is closed: of this address, or of the address with the most
    connections. Trusted proxies count only in total, because many clients share their connections.
    """

    def __init__(self, limits: Limits, proxies: Proxies) -> None:
        self._proxies = proxies
        self._per_address = limits.connections_per_address
        self._total = min(limits.connections, _most_files() - FILES_FOR_OTHERS)
        if self._total < limits.connections:
            logger.warning(
                "at most %d connections are accepted, because the process may open only a few files", self._total
            )
        self._by_source: dict[str, dict[Connection, None]] = {}
        self.count = 0

    def enter(self, host: str) -> Connection | None:
        """Add a connection from `host`. None if there is no room for it."""
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
        """Remove a closed connection. Repeated calls have no effect."""
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
        """Close the oldest idle one of these connections."""
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
    """Raise this process's limit of open files as far as allowed, up to the need of `wanted` connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = wanted + FILES_FOR_OTHERS
    if soft != resource.RLIM_INFINITY and soft < enough:
        most = enough if hard == resource.RLIM_INFINITY else min(enough, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


class HeadTooLarge(Exception):
    """A request's head exceeds its limit. The parser answers with status 400."""


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, with limits on the time and size of a head, and on the time to take an answer.

    uvicorn has no such limits: a client that sends half a head, or never reads, would stay connected forever.
    """

    def __init__(self, connection: Connection, left: Callable[[], None], limits: Limits, **of_uvicorn: Any) -> None:
        super().__init__(**of_uvicorn)
        self._connection = connection
        self._left = left
        self._limits = limits
        self._deadline: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._in_body = False  # also of a request that was answered before it was complete

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
            self._abort_in(self._limits.answer_within_s)  # the client may never read the rest of the answer
        elif self.cycle.response_complete:
            self._connection.idle = True

    def pause_writing(self) -> None:
        super().pause_writing()
        self._abort_in(self._limits.answer_within_s)  # a stream may have no end

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._disarm()

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
