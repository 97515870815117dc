"""gRPC-web as a route of the HTTP application, for browsers and for networks without HTTP/2."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Sequence
from contextlib import aclosing

from fastapi import APIRouter, Request, Response
from grpclib import GRPCError, Status
from grpclib.metadata import encode_grpc_message
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from deepgrid.compat.compat_context import Compat
from deepgrid.compat.logger_api.methods import LONGEST_REQUEST_BYTES, SERVICE, Batches, answers
from deepgrid.compat.logger_api.status import invalid, seconds_of, service_stops, stream_is_over
from deepgrid.services.admission.gate import read_body
from deepgrid.services.refusal import Refusal

HEAD_BYTES = 5  # a flag and the length of what follows
COMPRESSED, TRAILERS = 0x01, 0x80

BINARY_TYPES = ("application/grpc-web", "application/grpc-web+proto")
TEXT_TYPES = ("application/grpc-web-text", "application/grpc-web-text+proto")
LONGEST_BODY_BYTES = 2 * LONGEST_REQUEST_BYTES  # base64 and the frame add a third

router = APIRouter()


def message_of(body: bytes, *, text: bool) -> bytes:
    """Return the message in the one frame of a request's body. Raises GRPCError."""
    if text:
        try:
            body = base64.b64decode(body, validate=True)
        except binascii.Error:
            raise invalid("the body is not base64") from None
    if len(body) < HEAD_BYTES or len(body) != HEAD_BYTES + int.from_bytes(body[1:HEAD_BYTES], "big"):
        raise invalid("the body must be one frame: a flag, the length in 4 bytes, and the message")
    require_plain(body[0])
    return body[HEAD_BYTES:]


def require_plain(flag: int) -> None:
    """Refuse a message whose frame has another flag than 0. Raises GRPCError."""
    if flag == COMPRESSED:
        raise GRPCError(Status.UNIMPLEMENTED, "compressed messages are not supported")
    if flag:
        raise invalid("the flag of the frame must be 0")


def frames(messages: Sequence[bytes], *, text: bool) -> bytes:
    """Return the messages as frames."""
    return _encode(b"".join(bytes(1) + len(message).to_bytes(4, "big") + message for message in messages), text=text)


def trailers(status: Status, sentence: str, *, text: bool) -> bytes:
    """Return the last frame: status and sentence."""
    lines = f"grpc-status:{status.value}\r\ngrpc-message:{encode_grpc_message(sentence)}\r\n".encode()
    return _encode(bytes([TRAILERS]) + len(lines).to_bytes(4, "big") + lines, text=text)


def _encode(data: bytes, *, text: bool) -> bytes:
    return base64.b64encode(data) if text else data


@router.post(f"/{SERVICE}/{{method}}")
async def call(request: Request, context: Compat) -> Response:
    """Call a method of the log service: one frame in the body, frames in the answer, the status in the last one."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in BINARY_TYPES + TEXT_TYPES:
        raise Refusal(415, f"the content type must be {BINARY_TYPES[1]} or {TEXT_TYPES[0]}")
    body = await read_body(request, LONGEST_BODY_BYTES)
    text = kind in TEXT_TYPES

    async def batches() -> Batches:
        message = message_of(body, text=text)
        async for batch in answers(request.url.path, context, request.scope["state"]["source"], message):
            yield batch

    return FrameStream(batches(), request.headers.get("grpc-timeout"), context.limits.stream_s, text=text)


class FrameStream(StreamingResponse):
    """The answers as frames. Ends with the status, even when the time is over or the service stops.

    Each batch waits until the client has taken the earlier ones.
    """

    def __init__(self, batches: Batches, timeout: str | None, longest_s: float, *, text: bool) -> None:
        super().__init__((), media_type=(TEXT_TYPES if text else BINARY_TYPES)[1])
        self._batches, self._timeout, self._longest_s, self._text = batches, timeout, longest_s, text

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        except asyncio.CancelledError:  # by the server, which stops
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            await self._end(send, service_stops())

    async def stream_response(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        try:
            await self._stream(send)
        except GRPCError as error:
            await self._end(send, error)
        else:
            await self._end(send, GRPCError(Status.OK, ""))

    async def _stream(self, send: Send) -> None:
        asked_s = seconds_of(self._timeout)
        try:
            async with asyncio.timeout(min(asked_s, self._longest_s)), aclosing(self._batches) as batches:
                async for batch in batches:
                    await send({"type": "http.response.body", "body": self._frames(batch), "more_body": True})
        except TimeoutError:
            if asked_s <= self._longest_s:
                raise GRPCError(Status.DEADLINE_EXCEEDED, "the call's own time limit is over") from None
            raise stream_is_over(self._longest_s) from None

    def _frames(self, batch: Sequence[bytes]) -> bytes:
        return frames(batch, text=self._text)

    async def _end(self, send: Send, error: GRPCError) -> None:
        await send({"type": "http.response.body", "body": trailers(error.status, error.message or "", text=self._text)})
