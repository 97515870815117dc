"""The gRPC server, on a port of its own because uvicorn speaks no HTTP/2.

Messages are handed to the methods as bytes, so that the methods answer malformed ones, and grpcio logs nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import grpc
from grpc import StatusCode, aio

from deepgrid.errors import ConfigurationError
from deepgrid.services.admission import Limits, Proxies
from deepgrid.services.admission.limits import source_of
from deepgrid.services.context import Context
from deepgrid.services.logger_api.methods import LONGEST_REQUEST_BYTES, answers
from deepgrid.services.logger_api.status import GrpcError, as_grpc_errors, invalid, service_stops, stream_is_over

STOP_WITHIN_S = 3.0
IDENTITY_ONLY = 1  # bit set of compression algorithms: a compressed message could unpack to a large one

Call = aio.ServicerContext[bytes, bytes]


@asynccontextmanager
async def serving_grpc(
    context: Context, host: str, port: int, proxies: Proxies, tls: tuple[Path, Path] | None
) -> AsyncIterator[str]:
    """Serve gRPC while the context lasts, and yield the address. Port 0 takes a free port.

    Args:
        context: The running service.
        host: Address to listen at.
        port: Port to listen at.
        proxies: Proxies whose X-Forwarded-For is trusted.
        tls: Private key and certificate, PEM files that fit each other. None serves without TLS.

    Raises:
        ConfigurationError: The port is taken.
    """
    calls = _Calls(context, proxies)
    limits = context.admission.limits
    server = aio.server(options=_options(limits), maximum_concurrent_rpcs=limits.connections)
    server.add_generic_rpc_handlers((calls,))
    shown = f"[{host}]" if ":" in host else host
    try:
        if tls is None:
            port = server.add_insecure_port(f"{shown}:{port}")
        else:
            pair = (tls[0].read_bytes(), tls[1].read_bytes())
            port = server.add_secure_port(f"{shown}:{port}", grpc.ssl_server_credentials([pair]))
    except RuntimeError:
        raise ConfigurationError(
            f"The log service cannot listen at {shown}:{port}.", next_step="Choose a free port with --grpc-port."
        ) from None
    await server.start()
    try:
        yield f"{shown}:{port}"
    finally:
        calls.stop()
        await server.stop(STOP_WITHIN_S)


def _options(limits: Limits) -> list[tuple[str, Any]]:
    """Limits on connections, and pings. Clients written in Go ping every 20 s while a stream is quiet."""
    return [
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", LONGEST_REQUEST_BYTES),
        ("grpc.max_metadata_size", 8 * 1024),
        ("grpc.compression_enabled_algorithms_bitset", IDENTITY_ONLY),
        ("grpc.max_concurrent_streams", limits.followers_per_address),
        ("grpc.max_allowed_incoming_connections", limits.connections),
        ("grpc.max_connection_idle_ms", limits.keep_alive_s * 1000),
        ("grpc.server_handshake_timeout_ms", int(limits.head_within_s * 1000)),
        ("grpc.keepalive_time_ms", limits.keep_alive_s * 1000),  # finds connections that are dead
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ]


class _Calls(grpc.GenericRpcHandler):
    """The handlers of all methods, with the limits of the HTTP application."""

    def __init__(self, context: Context, proxies: Proxies) -> None:
        self._context = context
        self._limits = context.admission.limits
        self._proxies = proxies
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stops = False

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """A handler for each path, as the methods refuse what they do not know."""
        handler: Callable[[object, Call], Awaitable[None]] = partial(self._serve, handler_call_details.method)
        return grpc.stream_stream_rpc_method_handler(handler)

    def stop(self) -> None:
        """End all calls with UNAVAILABLE."""
        self._stops = True
        for task in self._tasks:
            task.cancel()

    async def _serve(self, path: str, _requests: object, call: Call) -> None:
        """Serve one call. The client's cancellation and time limit arrive as a cancellation of the task."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._stream(path, call)
        except GrpcError as error:
            await self._end(call, error)
        except asyncio.CancelledError:
            if not self._stops:
                raise
            task.uncancel()
            await self._end(call, service_stops())
        finally:
            self._tasks.discard(task)

    async def _stream(self, path: str, call: Call) -> None:
        admission = self._context.admission
        source = self._source_of(call)
        with admission.running.hold(source) as held:
            if not held:
                raise GrpcError(StatusCode.RESOURCE_EXHAUSTED, "too many requests at once")
            with as_grpc_errors():
                admission.admit(source)
            message = await self._request(call)
            try:
                async with asyncio.timeout(self._limits.stream_s):
                    await self._answer(path, source, message, call)
            except TimeoutError:
                raise stream_is_over(self._limits.stream_s) from None

    async def _request(self, call: Call) -> bytes:
        try:
            async with asyncio.timeout(self._limits.body_within_s):
                message = await call.read()
        except TimeoutError:
            raise GrpcError(
                StatusCode.DEADLINE_EXCEEDED, f"the request did not arrive within {self._limits.body_within_s:.0f} s"
            ) from None
        if not isinstance(message, bytes):  # the end of the stream
            raise invalid("the call has no request")
        return message

    async def _answer(self, path: str, source: str, message: bytes, call: Call) -> None:
        """Send the answers. Each waits until the client has taken the earlier ones."""
        async with aclosing(answers(path, self._context, source, message)) as batches:
            async for batch in batches:
                try:
                    async with asyncio.timeout(self._limits.answer_within_s):
                        for one in batch:
                            await call.write(one)
                except TimeoutError:
                    raise GrpcError(StatusCode.DEADLINE_EXCEEDED, "the output was not taken in time") from None

    async def _end(self, call: Call, error: GrpcError) -> None:
        """Send the status. A client that takes nothing does not get it."""
        try:
            async with asyncio.timeout(STOP_WITHIN_S):
                await call.abort(error.code, error.sentence)
        except TimeoutError:
            return

    def _source_of(self, call: Call) -> str:
        """The source address of a call, as uvicorn finds that of an HTTP request."""
        host = host_of(call.peer())
        if host in self._proxies:
            metadata = dict(call.invocation_metadata() or ())
            for entry in reversed(str(metadata.get("x-forwarded-for", "")).split(",")):
                host = entry.strip() or host
                if host not in self._proxies:
                    break
        return source_of(host)


def host_of(peer: str) -> str:
    """The address in a peer's name, such as `ipv4:10.0.0.1:5555` or `ipv6:%5B::1%5D:5555`."""
    host = unquote(peer).partition(":")[2].rpartition(":")[0].strip("[]")
    try:
        return str(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        return host
