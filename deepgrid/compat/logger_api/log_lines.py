"""Splits output into lines, as it arrives, and encodes them as messages of the log service."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from deepgrid.compat.logger_api.logger_pb2 import ReadResponse

LONGEST_LINE_BYTES = 64 * 1024
SHARED_PIECES = 128  # in memory, for the other followers of the same log
PART_BYTES, PART_LINES = 16 * 1024, 256  # of a piece, encoded at once
SMALL_PART_BYTES = 1024  # with more lines than that: an empty line costs fifty times its size

Messages = tuple[bytes, ...]


class LineMessages:
    """One message per line, without its CR and LF. A longer line than the limit is sent in parts.

    What follows the last line end waits for the next one, or for `rest`. The followers of a log get the same pieces of
    output, so small pieces are split and encoded once. Of larger ones, a slow follower holds one small part.
    """

    def __init__(self) -> None:
        self._rest = b""

    def batches(self, data: bytes, at_ns: int) -> Iterator[Messages]:
        """Yield the messages of the lines that end in `data`, which was stored at `at_ns` unix nanoseconds."""
        if len(self._rest) + len(data) <= PART_BYTES and data.count(b"\n") <= PART_LINES:
            messages, self._rest = _shared(self._rest, data, at_ns)
            if messages:
                yield messages
            return
        for part in _parts_of(data):
            messages, self._rest = _encode_lines(self._rest, part, at_ns)
            if messages:
                yield messages

    def rest(self, at_ns: int) -> Iterator[Messages]:
        """Yield the message of the last line, if it has no line end."""
        line, self._rest = self._rest, b""
        if line:
            yield (_message(line.rstrip(b"\r"), at_ns),)


def _encode_lines(rest: bytes, data: bytes, at_ns: int) -> tuple[Messages, bytes]:
    """Return the messages of the lines that end in `data`, and the rest after the last line end."""
    first, *others = data.split(b"\n")
    *lines, rest = (rest + first, *others)
    parts = [part for line in lines for part in _parts(line.rstrip(b"\r"))]
    if len(rest) > LONGEST_LINE_BYTES:
        *full, rest = _parts(rest)
        parts += full
    return tuple(_message(part, at_ns) for part in parts), rest


_shared = lru_cache(SHARED_PIECES)(_encode_lines)


def _parts_of(data: bytes) -> Iterator[bytes]:
    """Yield the data of a large piece, in parts of few lines."""
    for start in range(0, len(data), PART_BYTES):
        part = data[start : start + PART_BYTES]
        size = SMALL_PART_BYTES if part.count(b"\n") > PART_LINES else PART_BYTES
        for at in range(0, len(part), size):
            yield part[at : at + size]


def _message(line: bytes, at_ns: int) -> bytes:
    return ReadResponse(data=line, timestamp=at_ns).SerializeToString()


def _parts(line: bytes) -> list[bytes]:
    starts = range(0, max(1, len(line)), LONGEST_LINE_BYTES)
    return [line[start : start + LONGEST_LINE_BYTES] for start in starts]
