"""HTTP/2 connections of gRPC clients: calls within their limits, answers in batches.

`h2` does the protocol. grpcio's own server takes one round trip between its threads per message; here a call sends a
batch of messages at once. So a line for 500 followers costs 500 writes of a socket, and a burst of lines costs one.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import cast
from urllib.parse import quote

from grpc import StatusCode
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    PingAckReceived,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

from deepgrid.services.admission.connections import Connection
from deepgrid.services.admission.limits import Limits
from deepgrid.services.logger_api.status import GrpcError, invalid
from deepgrid.services.logger_api.web_frames import COMPRESSED, HEAD_BYTES, PLAIN

HEADERS_BYTES = 8 * 1024
MOST_RESETS = 1000  # by one client's connection; each costs as much as a call
HEAD = [(":status", "200"), ("content-type", "application/grpc")]


class Call:
    """One call of a client: its path, its headers and its one request."""

    def __init__(self, protocol: GrpcProtocol, stream: int, headers: dict[str, str], longest: int) -> None:
        self.path = headers.get(":path", "")
        self.headers = headers
        self.host = protocol.host
        self.complete = False  # the client has sent all
        self._protocol, self._stream, self._longest = protocol, stream, longest
        self._data = bytearray()
        self._request: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._began = False

    async def request(self) -> bytes:
        """The request. Raises GrpcError."""
        return await self._request

    async def send(self, data: bytes) -> None:
        """Send frames. Waits until the client takes them."""
        if not self._began:
            self._began = True
            self._protocol.begin(self._stream, HEAD)
        await self._protocol.send(self._stream, data)

    def end(self, code: StatusCode, sentence: str) -> None:
        """Send the status."""
        number: int = code.value[0]
        status = [("grpc-status", str(number)), ("grpc-message", quote(sentence, safe=PLAIN))]
        self._protocol.end(self._stream, status if self._began else HEAD + status, complete=self.complete)

    def feed(self, data: bytes) -> None:
        """Take a part of the request."""
        if self._request.done():
            return
        self._data += data
        if len(self._data) < HEAD_BYTES:
            return
        size = int.from_bytes(self._data[1:HEAD_BYTES], "big")
        if self._data[0] == COMPRESSED:
            self._fail(GrpcError(StatusCode.UNIMPLEMENTED, "compressed messages are not supported"))
        elif self._data[0]:
            self._fail(invalid("the flag of the frame must be 0"))
        elif size > self._longest:
            self._fail(GrpcError(StatusCode.RESOURCE_EXHAUSTED, f"the request is larger than {self._longest} bytes"))
        elif len(self._data) >= HEAD_BYTES + size:
            self._request.set_result(bytes(self._data[HEAD_BYTES : HEAD_BYTES + size]))

    def close(self) -> None:
        """The client has sent all."""
        self.complete = True
        if not self._request.done():
            self._fail(invalid("the call has no request"))

    def _fail(self, error: GrpcError) -> None:
        self._data.clear()
        self._request.set_exception(error)
        self._request.exception()  # marks it as seen: the call may have ended


class GrpcProtocol(asyncio.Protocol):
    """One connection of a client. `answer` serves each call in a task, which is cancelled when the client leaves."""

    def __init__(
        self, connection: Connection, left: Callable[[], None], limits: Limits, longest: int,
        answer: Callable[[Call], Awaitable[None]], made: set[GrpcProtocol],
    ) -> None:  # fmt: skip
        """`made` holds the protocols that have a connection now."""
        self.host = ""
        self._made = made
        self._connection, self._left, self._limits, self._longest = connection, left, limits, longest
        self._answer = answer
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self._h2.local_settings = Settings(client=False, initial_values={
            SettingCodes.MAX_CONCURRENT_STREAMS: limits.followers_per_address,
            SettingCodes.MAX_HEADER_LIST_SIZE: HEADERS_BYTES,
        })  # fmt: skip
        self._h2.decoder.max_header_list_size = HEADERS_BYTES
        self._calls: dict[int, tuple[Call, asyncio.Task[None]]] = {}
        self._resets = 0
        self._pinged = False
        self._room = asyncio.Event()  # in the buffer of the socket
        self._window = asyncio.Event()  # set and replaced when a window grows
        self._timer: asyncio.TimerHandle | None = None
        self._slow: asyncio.TimerHandle | None = None

    # -- the socket --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self._made.add(self)
        self._connection.close = self._transport.abort
        self.host = str((transport.get_extra_info("peername") or ("",))[0])
        self._room.set()
        self._in(self._limits.head_within_s, self._transport.abort)  # the client's settings come first
        self._h2.initiate_connection()
        self._flush()

    def connection_lost(self, error: Exception | None) -> None:
        for timer in (self._timer, self._slow):
            if timer is not None:
                timer.cancel()
        for _, task in self._calls.values():
            task.cancel()
        self._made.discard(self)
        self._left()

    def pause_writing(self) -> None:
        """A client that does not read is not read either, as each of its frames may need an answer."""
        self._room.clear()
        self._transport.pause_reading()
        self._slow = asyncio.get_running_loop().call_later(self._limits.answer_within_s, self._transport.abort)

    def resume_writing(self) -> None:
        self._room.set()
        if not self._transport.is_closing():
            self._transport.resume_reading()
        if self._slow is not None:
            self._slow.cancel()

    def data_received(self, data: bytes) -> None:
        try:
            events = self._h2.receive_data(data)
        except (ProtocolError, UnicodeError):
            self._hang_up()
            return
        for event in events:
            if not self._transport.is_closing():
                self._take(event)
        self._flush()

    # -- for calls ---------------------------------------------------------------------------

    def begin(self, stream: int, headers: list[tuple[str, str]]) -> None:
        """Send the head of an answer. Raises ConnectionError when the client is gone."""
        try:
            self._h2.send_headers(stream, headers)
        except ProtocolError:
            raise ConnectionResetError from None

    async def send(self, stream: int, data: bytes) -> None:
        """Send data within the client's windows. Raises ConnectionError when the client is gone."""
        while data:
            await self._room.wait()
            try:
                most = min(self._h2.local_flow_control_window(stream), self._h2.max_outbound_frame_size)
                if most > 0:
                    self._h2.send_data(stream, data[:most])
            except ProtocolError:
                raise ConnectionResetError from None
            if most > 0:
                data = data[most:]
                self._flush()
            else:
                await self._window.wait()

    def end(self, stream: int, headers: list[tuple[str, str]], *, complete: bool) -> None:
        """Send the trailers. `complete`: the client has sent all."""
        try:
            self._h2.send_headers(stream, headers, end_stream=True)
            if not complete:
                self._h2.reset_stream(stream, ErrorCodes.NO_ERROR)  # what it still sends is not needed
        except ProtocolError:
            return  # the client is gone
        self._flush()

    def close(self) -> None:
        """End the connection, which has no calls."""
        self._hang_up(ErrorCodes.NO_ERROR)

    # -- events ------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self._open(event)
            case DataReceived():
                self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                if event.stream_id in self._calls:
                    self._calls[event.stream_id][0].feed(event.data)
            case StreamEnded():
                if event.stream_id in self._calls:
                    self._calls[event.stream_id][0].close()
            case StreamReset():
                self._resets += 1
                if event.stream_id in self._calls:
                    self._calls[event.stream_id][1].cancel()
                if self._resets > MOST_RESETS:
                    self._hang_up(ErrorCodes.ENHANCE_YOUR_CALM)
            case WindowUpdated() | RemoteSettingsChanged():
                window, self._window = self._window, asyncio.Event()
                window.set()
                if isinstance(event, RemoteSettingsChanged) and not self._calls:
                    self._rest()
            case PingAckReceived():
                self._pinged = False
            case ConnectionTerminated():
                self._transport.close()

    def _open(self, event: RequestReceived) -> None:
        stream = event.stream_id
        assert stream is not None
        headers = {bytes(name).decode("latin-1"): bytes(value).decode("latin-1") for name, value in event.headers or ()}
        if headers.get(":method") != "POST" or not headers.get("content-type", "").startswith("application/grpc"):
            self.end(stream, [(":status", "415")], complete=event.stream_ended is not None)
            return
        call = Call(self, stream, headers, self._longest)
        task = asyncio.create_task(self._serve(call, stream))
        self._calls[stream] = call, task
        task.add_done_callback(lambda _: self._closed(stream))
        self._connection.idle = False
        self._in(self._limits.keep_alive_s, self._ping)

    async def _serve(self, call: Call, stream: int) -> None:
        try:
            await self._answer(call)
        except ConnectionError:
            return

    def _closed(self, stream: int) -> None:
        del self._calls[stream]
        if not self._calls and not self._transport.is_closing():
            self._rest()

    def _rest(self) -> None:
        """Without calls, the connection ends after some time, or when another needs its place."""
        self._connection.idle = True
        self._in(self._limits.keep_alive_s, self.close)

    def _ping(self) -> None:
        """Ask whether the client is still there, and end the connection if it did not answer the last time."""
        if self._pinged:
            self._transport.abort()
            return
        self._pinged = True
        self._h2.ping(b"deepgrid")
        self._flush()
        self._in(self._limits.keep_alive_s, self._ping)

    def _in(self, seconds: float, action: Callable[[], object]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, action)

    def _hang_up(self, reason: ErrorCodes = ErrorCodes.PROTOCOL_ERROR) -> None:
        with contextlib.suppress(ProtocolError):  # it is closed already
            self._h2.close_connection(reason)
        self._flush()
        self._transport.close()
        self._in(self._limits.head_within_s, self._transport.abort)  # if the client does not take the rest

    def _flush(self) -> None:
        if (data := self._h2.data_to_send()) and not self._transport.is_closing():
            self._transport.write(data)
