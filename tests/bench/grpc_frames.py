"""A cheap reader of gRPC streams, so that hundreds of followers leave the processors to the service.

grpcio takes as long to receive a message as to send it. This module reads HTTP/2 frames and ignores headers.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GO_AWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
ACK = END_OF_STREAM = 1
END_OF_HEADERS = 4
INITIAL_WINDOW, LARGEST_WINDOW, USUAL_WINDOW = 4, 2**31 - 1, 2**16 - 1
HEAD_BYTES, PREFIX_BYTES = 9, 5
READ_BYTES = 256 * 1024


async def messages(address: str, path: str, request: bytes, source: str) -> AsyncIterator[bytes]:
    """Yield the messages of the answer to one call from an address. Ends with the stream, whatever its status."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), local_addr=(source, 0))
    received = data = b""
    over = False
    try:
        writer.write(_opening(address, path, request))
        while not over and (chunk := await reader.read(READ_BYTES)):
            received += chunk
            at = 0
            while (end := _end(received, at, HEAD_BYTES, 0, 3)) <= len(received):
                kind, flags, content = received[at + 3], received[at + 4], received[at + HEAD_BYTES : end]
                at = end
                if kind == DATA:
                    data += content
                elif kind in (SETTINGS, PING) and not flags & ACK:
                    writer.write(_frame(kind, ACK, 0, content if kind == PING else b""))
                over |= kind in (RESET, GO_AWAY) or (kind in (DATA, HEADERS) and bool(flags & END_OF_STREAM))
            received, at = received[at:], 0
            while (end := _end(data, at, PREFIX_BYTES, 1, 4)) <= len(data):
                yield data[at + PREFIX_BYTES : end]
                at = end
            data = data[at:]
    finally:
        writer.close()


def _end(data: bytes, at: int, head: int, skipped: int, size: int) -> int:
    """Return the end of the frame or message at `at`. Its head has `size` bytes for the length."""
    return at + head + int.from_bytes(data[at + skipped : at + skipped + size], "big")


def _opening(address: str, path: str, request: bytes) -> bytes:
    """Return all that the client sends. The service may send without waiting for the client's windows."""
    names = {":method": "POST", ":scheme": "http", ":path": path, ":authority": address}
    names |= {"te": "trailers", "content-type": "application/grpc"}
    head = b"".join(b"\0" + _text(name) + _text(value) for name, value in names.items())
    return b"".join([
        PREFACE,
        _frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW, LARGEST_WINDOW)),
        _frame(WINDOW, 0, 0, struct.pack(">I", LARGEST_WINDOW - USUAL_WINDOW)),
        _frame(HEADERS, END_OF_HEADERS, 1, head),
        _frame(DATA, END_OF_STREAM, 1, b"\0" + len(request).to_bytes(4, "big") + request),
    ])  # fmt: skip


def _frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content


def _text(text: str) -> bytes:
    """Return a short text of a header, without Huffman coding."""
    return bytes([len(text)]) + text.encode()
