"""The gRPC server, on a listener of its own because uvicorn speaks no HTTP/2. grpclib does the protocol.

It is for a proxy: it has no TLS, and takes the source address from X-Forwarded-For. The proxy bounds what clients send
in frames, headers and time.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial

from grpclib import GRPCError, Status
from grpclib.config import Configuration
from grpclib.const import Cardinality, Handler
from grpclib.server import Server, Stream
from h2.exceptions import ProtocolError

from deepgrid.compat.compat_context import CompatContext
from deepgrid.compat.logger_api.grpc_web import HEAD_BYTES, frames, require_plain
from deepgrid.compat.logger_api.methods import LONGEST_REQUEST_BYTES, METHODS, NOT_OFFERED, answers
from deepgrid.compat.logger_api.status import as_grpc_errors, invalid, service_stops, stream_is_over
from deepgrid.services.admission.limits import source_of
from deepgrid.services.edge.listeners import BACKLOG

STOP_WITHIN_S = 3.0
LEAST_WINDOW_BYTES = 2**16 - 1  # bytes that a client may send ahead; a request is smaller
CONFIGURATION = Configuration(
    http2_connection_window_size=LEAST_WINDOW_BYTES, http2_stream_window_size=LEAST_WINDOW_BYTES
)
Call = Stream[bytes, bytes]

logging.getLogger("grpclib").setLevel(logging.CRITICAL)  # it logs the faults of callers, with tracebacks


@asynccontextmanager
async def serving_grpc(context: CompatContext, listener: socket.socket) -> AsyncIterator[None]:
    """Serve gRPC at a listening socket while the context lasts."""
    calls = _Calls(context)
    server = Server([calls], config=CONFIGURATION)
    server._h2_config.header_encoding = "latin-1"  # any byte of a header; else there is a traceback
    await server.start(sock=listener, backlog=BACKLOG)  # asyncio would set it to 100
    try:
        yield
    finally:
        calls.stops = True
        server.close()
        if calls.tasks:
            await asyncio.wait(calls.tasks, timeout=STOP_WITHIN_S)


class _Calls:
    """The methods as grpclib calls them, with the limits of the HTTP application."""

    def __init__(self, context: CompatContext) -> None:
        self._context = context
        self.stops = False
        self.tasks = set[asyncio.Task[None]]()

    def __mapping__(self) -> dict[str, Handler]:
        """Return the handler of each path."""
        paths = (*METHODS, *NOT_OFFERED)
        return {path: Handler(partial(self._serve, path), Cardinality.UNARY_STREAM, None, None) for path in paths}

    async def _serve(self, path: str, call: Call) -> None:
        """Serve one call. A client that leaves, or whose deadline is over, cancels the task."""
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        try:
            with as_grpc_errors():
                await self._within_limits(path, call)
        except asyncio.CancelledError:
            if not self.stops:
                raise
            task.uncancel()
            raise service_stops() from None

    async def _within_limits(self, path: str, call: Call) -> None:
        admission, longest_s = self._context.admission, self._context.limits.stream_s
        source = _source_of(call)
        with admission.running.hold(source) as held:
            if not held or self.stops:
                raise GRPCError(Status.RESOURCE_EXHAUSTED, "too many requests at once")
            admission.admit(source)
            try:
                async with asyncio.timeout(longest_s):
                    await self._answer(path, call, source)
            except TimeoutError:
                raise stream_is_over(longest_s) from None

    async def _answer(self, path: str, call: Call, source: str) -> None:
        """Send the answers. Each batch waits until the client has taken the earlier ones."""
        async with aclosing(answers(path, self._context, source, await self._request(call))) as batches:
            async for batch in batches:
                try:
                    async with asyncio.timeout(self._context.limits.answer_within_s):
                        await _send(call, batch)
                except TimeoutError:
                    raise GRPCError(Status.DEADLINE_EXCEEDED, "the output was not taken in time") from None

    async def _request(self, call: Call) -> bytes:
        within_s = self._context.limits.request_within_s
        try:
            async with asyncio.timeout(within_s):
                return await _message(call)
        except TimeoutError:
            raise GRPCError(Status.DEADLINE_EXCEEDED, f"the request did not arrive within {within_s:.0f} s") from None


async def _message(call: Call) -> bytes:
    """Return the request. grpclib's own `recv_message` would take one of any size."""
    stream = call._stream
    try:
        head = await stream.recv_data(HEAD_BYTES)
        if not head:
            raise invalid("the call has no request")
        require_plain(head[0])
        size = int.from_bytes(head[1:], "big")
        if size > LONGEST_REQUEST_BYTES:
            raise GRPCError(Status.RESOURCE_EXHAUSTED, f"the request is larger than {LONGEST_REQUEST_BYTES} bytes")
        return await stream.recv_data(size)
    except AssertionError:  # the client ended the call within it
        raise invalid("the request is cut off") from None


async def _send(call: Call, batch: Sequence[bytes]) -> None:
    """Send a batch at once. Waits until the client takes it."""
    try:
        if not call._send_initial_metadata_done:
            await call.send_initial_metadata()
        await call._stream.send_data(frames(batch, text=False))
    except ProtocolError:
        raise GRPCError(Status.CANCELLED, "the client is gone") from None


def _source_of(call: Call) -> str:
    """Return the source address that the proxy names; without one, the connection's address."""
    assert call.metadata is not None
    named = str(call.metadata.get("x-forwarded-for", "")).rpartition(",")[2].strip()
    peer = call.peer.addr()
    return source_of(named or (str(peer[0]) if peer else None))
