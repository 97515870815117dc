"""A job's output as JSON, one object per line of it, without loss: the texts or bytes joined are what the job wrote."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from deepgrid.cli.standard_streams import write_bytes
from deepgrid.client.job import AsyncJob

LONGEST_RECORD_BYTES = 64 * 1024  # longer lines are cut, so that memory stays bounded


@dataclass
class LogRecords:
    """Turns the parts of one claim's output into records.

    Attributes:
        claim: 1 for the first cluster that ran the job while this log was read, 2 for the next one.
    """

    claim: int = 1
    _open: bytes = b""
    _written: int | None = None

    def feed(self, data: bytes, written: int | None) -> Iterator[str]:
        """Yield the lines that a part completes. The services stored it at `written`, in unix seconds."""
        for line in io.BytesIO(data):
            self._open, self._written = self._open + line, written
            while len(self._open) > LONGEST_RECORD_BYTES:
                yield self._record(self._open[:LONGEST_RECORD_BYTES])
                self._open = self._open[LONGEST_RECORD_BYTES:]
            if self._open.endswith(b"\n"):
                yield from self.end()

    def end(self) -> Iterator[str]:
        """Yield what is left, such as a last line without its end."""
        if self._open:
            yield self._record(self._open)
            self._open = b""

    def _record(self, data: bytes) -> str:
        record: dict[str, object] = {"written": self._written, "claim": self.claim}
        try:
            record["text"] = data.decode()
        except UnicodeDecodeError:
            record["base64"] = base64.b64encode(data).decode()
        return json.dumps(record)


async def print_records(job: AsyncJob, *, follow: bool, say: Callable[[str], None]) -> int:
    """Print a job's output as records, one per line. Returns the number of its bytes."""
    records, printed = LogRecords(), 0
    async for piece in job.pieces(follow, say=say):
        if piece.claim != records.claim:
            records, printed = LogRecords(piece.claim), 0
        for data, written in piece.chunk.parts():
            for record in records.feed(data, written):
                write_bytes(record.encode() + b"\n")
            printed += len(data)
    for record in records.end():
        write_bytes(record.encode() + b"\n")
    return printed
