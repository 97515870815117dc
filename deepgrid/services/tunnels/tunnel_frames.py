"""Frames inside a tunnel: a kind (1 byte), a stream (4 bytes), a content. The agent on the node speaks the same."""

from __future__ import annotations

import json
import struct
from enum import IntEnum
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError

from deepgrid.services.messages import Message

MOST_CONTENT = 16384  # bytes
FIRST_WINDOW = 131072  # bytes of a stream that may be in flight in one direction, before a WINDOW
GRANT = 32768  # bytes that are taken before a WINDOW reports them
MOST_WINDOW = 2 * FIRST_WINDOW
HEAD = struct.Struct("!BI")
MAX_FRAME = HEAD.size + MOST_CONTENT

_COUNT = struct.Struct("!I")
_SIZE = struct.Struct("!HH")


class Kind(IntEnum):
    """What a frame says about its stream."""

    OPEN = 1  # customer: starts a command, a shell, or a connection (`StreamRequest`)
    DATA = 2  # input, or output
    ERRORS = 3  # output to standard error
    WINDOW = 4  # this many more bytes may be sent
    EOF = 5  # no more data in this direction
    RESIZE = 6  # customer: rows and columns of the terminal
    EXIT = 7  # job: how the stream ended, as JSON (`StreamEnd`)
    CLOSE = 8  # customer: end it
    END = 9  # supervisor: the tunnel is over, and why; the stream is 0


WITH_DATA = (Kind.DATA, Kind.ERRORS)


class BrokenFrame(ValueError):
    """The other side does not keep to the protocol. The text says how."""


class StreamRequest(Message):
    """What a stream is: a `shell`, a command (`exec`), or a connection to a port of the node's loopback (`forward`).

    `rows` is 0 for a command without a terminal.
    """

    kind: Literal["shell", "exec", "forward"]
    command: Annotated[tuple[Annotated[str, Field(max_length=8192)], ...], Field(max_length=256)] = ()
    rows: Annotated[int, Field(ge=0, le=1000)] = 0
    columns: Annotated[int, Field(ge=0, le=1000)] = 0
    term: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._+-]{0,40}$")] = ""
    port: Annotated[int, Field(ge=0, le=65535)] = 0


class StreamEnd(Message):
    """How a stream ended: with an exit status, or with an error in words."""

    status: int = 255
    error: Annotated[str, Field(max_length=500)] = ""


def pack(kind: Kind, stream: int, content: bytes = b"") -> bytes:
    """Return a frame."""
    return HEAD.pack(kind, stream) + content


def unpack(frame: bytes) -> tuple[Kind, int, bytes]:
    """Return kind, stream and content of a frame. Raises BrokenFrame."""
    if not HEAD.size <= len(frame) <= MAX_FRAME:
        raise BrokenFrame(f"a frame has {len(frame)} bytes")
    kind, stream = HEAD.unpack_from(frame)
    try:
        return Kind(kind), stream, frame[HEAD.size :]
    except ValueError:
        raise BrokenFrame(f"a frame has the kind {kind}") from None


def pack_count(count: int) -> bytes:
    """Return the content of a WINDOW."""
    return _COUNT.pack(count)


def count_in(content: bytes) -> int:
    """Return the bytes that a WINDOW grants. Raises BrokenFrame."""
    if len(content) != _COUNT.size:
        raise BrokenFrame("a window has no size")
    return int(_COUNT.unpack(content)[0])


def pack_size(rows: int, columns: int) -> bytes:
    """Return the content of a RESIZE."""
    return _SIZE.pack(min(max(rows, 1), 1000), min(max(columns, 1), 1000))


def size_in(content: bytes) -> tuple[int, int]:
    """Return rows and columns of a RESIZE. Raises BrokenFrame."""
    if len(content) != _SIZE.size:
        raise BrokenFrame("a terminal has no size")
    rows, columns = _SIZE.unpack(content)
    return int(rows), int(columns)


def request_in(content: bytes) -> StreamRequest:
    """Return what an OPEN asks for. Raises BrokenFrame."""
    try:
        return StreamRequest.model_validate_json(content)
    except ValidationError:
        raise BrokenFrame("a stream is opened in another way") from None


def end_in(content: bytes) -> StreamEnd:
    """Return how an EXIT says that its stream ended. A job can write it, so everything in it is checked."""
    try:
        read: Any = json.loads(content)
        status, error = read.get("status", 255), read.get("error", "")
    except (ValueError, AttributeError):
        return StreamEnd(error="the job's node does not say how it ended")
    text = "".join(one if one.isprintable() else " " for one in str(error))[:500]
    return StreamEnd(status=status if isinstance(status, int) and 0 <= status <= 255 else 255, error=text)
