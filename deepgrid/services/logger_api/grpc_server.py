"""The gRPC server, on a port of its own because uvicorn speaks no HTTP/2."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from grpc import StatusCode

from deepgrid.errors import ConfigurationError
from deepgrid.services.admission import Connections, Proxies
from deepgrid.services.admission.acceptor import Acceptor, bound
from deepgrid.services.admission.connections import Connection
from deepgrid.services.admission.limits import source_of
from deepgrid.services.context import Context
from deepgrid.services.logger_api.http2 import Call, GrpcProtocol
from deepgrid.services.logger_api.methods import LONGEST_REQUEST_BYTES, answers
from deepgrid.services.logger_api.status import (
    GrpcError,
    as_grpc_errors,
    seconds_of,
    service_stops,
    stream_is_over,
    time_is_over,
)
from deepgrid.services.logger_api.web_frames import frames

STOP_WITHIN_S = 3.0


@asynccontextmanager
async def serving_grpc(
    context: Context, host: str, port: int, proxies: Proxies, tls: ssl.SSLContext | None
) -> AsyncIterator[str]:
    """Serve gRPC while the context lasts, and yield the address. Port 0 takes a free port.

    Args:
        context: The running service.
        host: Address to listen at.
        port: Port to listen at.
        proxies: Proxies whose X-Forwarded-For is trusted.
        tls: Certificate and its key. None serves without TLS.

    Raises:
        ConfigurationError: The port is taken.
    """
    if tls is not None:
        tls.set_alpn_protocols(["h2"])
    try:
        listener = bound(host, port, "The log service")
    except ConfigurationError as error:
        raise ConfigurationError(error.message, next_step="Choose a free port with --grpc-port.") from None
    server = _Server(context, proxies)
    limits = context.admission.limits
    with listener:
        acceptor = Acceptor(listener, server.open, server.protocol, tls, limits.head_within_s)
        try:
            yield f"{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        finally:
            await acceptor.stop()
            await server.stop()


class _Server:
    """The connections and their calls, with the limits of the HTTP application."""

    def __init__(self, context: Context, proxies: Proxies) -> None:
        self._context = context
        self._limits = context.admission.limits
        self._proxies = proxies
        self._stops = False
        self._protocols: set[GrpcProtocol] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.open = Connections(self._limits, proxies)

    def protocol(self, connection: Connection) -> GrpcProtocol:
        """The protocol of a new connection."""
        return GrpcProtocol(
            connection, lambda: self.open.leave(connection), self._limits, LONGEST_REQUEST_BYTES, self._serve,
            self._protocols,
        )  # fmt: skip

    async def stop(self) -> None:
        """End all calls with UNAVAILABLE, then the connections."""
        self._stops = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_WITHIN_S)
        for protocol in list(self._protocols):
            protocol.close()

    async def _serve(self, call: Call) -> None:
        """Serve one call. A client that leaves cancels the task."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._within_limits(call)
        except GrpcError as error:
            call.end(error.code, error.sentence)
        except asyncio.CancelledError:
            if not self._stops:
                raise
            task.uncancel()
            stopped = service_stops()
            call.end(stopped.code, stopped.sentence)
        else:
            call.end(StatusCode.OK, "")
        finally:
            self._tasks.discard(task)

    async def _within_limits(self, call: Call) -> None:
        admission, source = self._context.admission, self._source_of(call)
        asked_s, longest_s = seconds_of(call.headers.get("grpc-timeout")), self._limits.stream_s
        with admission.running.hold(source) as held:
            if not held:
                raise GrpcError(StatusCode.RESOURCE_EXHAUSTED, "too many requests at once")
            with as_grpc_errors():
                admission.admit(source)
            try:
                async with asyncio.timeout(min(asked_s, longest_s)):
                    await self._answer(call, source, await self._request(call))
            except TimeoutError:
                raise (time_is_over() if asked_s <= longest_s else stream_is_over(longest_s)) from None

    async def _request(self, call: Call) -> bytes:
        try:
            async with asyncio.timeout(self._limits.body_within_s):
                return await call.request()
        except TimeoutError:
            raise GrpcError(
                StatusCode.DEADLINE_EXCEEDED, f"the request did not arrive within {self._limits.body_within_s:.0f} s"
            ) from None

    async def _answer(self, call: Call, source: str, message: bytes) -> None:
        """Send the answers. Each batch waits until the client has taken the earlier ones."""
        async with aclosing(answers(call.path, self._context, source, message)) as batches:
            async for batch in batches:
                try:
                    async with asyncio.timeout(self._limits.answer_within_s):
                        await call.send(frames(batch, text=False))
                except TimeoutError:
                    raise GrpcError(StatusCode.DEADLINE_EXCEEDED, "the output was not taken in time") from None

    def _source_of(self, call: Call) -> str:
        """The source address of a call, as uvicorn finds that of an HTTP request."""
        host = call.host
        if host in self._proxies:
            for entry in reversed(call.headers.get("x-forwarded-for", "").split(",")):
                host = entry.strip() or host
                if host not in self._proxies:
                    break
        return source_of(host)
