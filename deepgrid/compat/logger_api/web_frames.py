"""The frames of gRPC-web, in binary or text (base64) form."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from grpclib import GRPCError, Status
from grpclib.metadata import encode_grpc_message

from deepgrid.compat.logger_api.status import invalid

HEAD_BYTES = 5  # a flag and the length of what follows
COMPRESSED, TRAILERS = 0x01, 0x80

BINARY_TYPES = ("application/grpc-web", "application/grpc-web+proto")
TEXT_TYPES = ("application/grpc-web-text", "application/grpc-web-text+proto")


def message_of(body: bytes, *, text: bool) -> bytes:
    """The message in the one frame of a request's body. Raises GRPCError."""
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
    """The messages as frames."""
    return _coded(b"".join(bytes(1) + len(message).to_bytes(4, "big") + message for message in messages), text=text)


def trailers(status: Status, sentence: str, *, text: bool) -> bytes:
    """The last frame: status and sentence."""
    lines = f"grpc-status:{status.value}\r\ngrpc-message:{encode_grpc_message(sentence)}\r\n".encode()
    return _coded(bytes([TRAILERS]) + len(lines).to_bytes(4, "big") + lines, text=text)


def _coded(data: bytes, *, text: bool) -> bytes:
    return base64.b64encode(data) if text else data
