"""Splits output into lines, as it arrives."""

from __future__ import annotations

from collections.abc import Iterator

LONGEST_LINE_BYTES = 64 * 1024


class LineSplitter:
    """Yields lines without their CR and LF. A longer line than the limit is yielded in parts.

    What follows the last line end waits for the next one, or for `rest`.
    """

    def __init__(self) -> None:
        self._rest = b""

    def lines(self, data: bytes) -> Iterator[bytes]:
        """The lines that end in `data`."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            line, self._rest = self._rest + data[start:end], b""
            yield from _parts(line.rstrip(b"\r"))
            start = end + 1
        self._rest += data[start:]
        if len(self._rest) > LONGEST_LINE_BYTES:
            *full, self._rest = _parts(self._rest)
            yield from full

    def rest(self) -> Iterator[bytes]:
        """The last line, if it has no line end."""
        if self._rest:
            line, self._rest = self._rest, b""
            yield line.rstrip(b"\r")


def _parts(line: bytes) -> list[bytes]:
    starts = range(0, max(1, len(line)), LONGEST_LINE_BYTES)
    return [line[start : start + LONGEST_LINE_BYTES] for start in starts]
