"""The standard streams of `dps`, which can fail: a full disk, a pipe without a reader, a closed descriptor.

What changed the chain is printed in any case: on standard error if standard output fails. The exit status says so.
Verbs that serve log to standard error, one line per event.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

OUTPUT_FAILED = 3  # exit status: the command did its work, and standard output failed


class OutputLost(Exception):
    """Standard output cannot be written."""


class _Output(io.TextIOWrapper):
    """Standard output. It raises OutputLost when it fails, so that this is not mistaken for another error."""

    replaced: object = None  # the stream before, which would close the buffer at its end
    fault: OSError | None = None
    said = False  # a result was printed

    def write(self, text: str, /) -> int:
        with self._watched():
            return super().write(text)

    def flush(self) -> None:
        with self._watched():
            super().flush()

    def write_bytes(self, data: bytes) -> None:
        """Write bytes after the text so far."""
        with self._watched():
            super().flush()
            self.buffer.write(data)
            self.buffer.flush()

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.fault = error
            # What the buffer still has goes nowhere. It would fail again when the process ends.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            raise OutputLost from error


class _Errors(io.TextIOWrapper):
    """Standard error. What it cannot take is lost, and never stops a command."""

    replaced: object = None

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        with suppress(OSError):
            super().flush()


def take_streams() -> None:
    """Replace the standard streams by the streams of this module. Closed ones get a stand-in.

    Without it, the next file or connection would get the number of a closed stream, and output would go there.
    Terminals stay as they are: `input` drops a Ctrl-C that comes while it flushes a stream of this module.
    """
    if sys.stdin is None:
        sys.stdin = open(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")  # noqa: SIM115 - to the end
    sys.stdout = _instead_of(sys.stdout, _Output, os.O_RDONLY)  # a stand-in that cannot be written
    sys.stderr = _instead_of(sys.stderr, _Errors, os.O_WRONLY)


def _instead_of(stream: object, kind: type[_Output] | type[_Errors], stand_in: int) -> io.TextIOWrapper:
    if not isinstance(stream, io.TextIOWrapper):
        return kind(open(os.open(os.devnull, stand_in), "wb"), encoding="utf-8", errors="replace")
    stream.reconfigure(errors="replace")  # a job may print characters that this terminal cannot show
    if stream.isatty():
        return stream
    made = kind(stream.buffer, stream.encoding, "replace", None, stream.line_buffering, stream.write_through)
    made.replaced = stream
    return made


def print_result(*lines: str) -> None:
    """Print what a verb did with money or on the chain, at once: on standard error if standard output fails."""
    text = "".join(f"{line}\n" for line in lines)
    try:
        require_output()
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OutputLost, OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
    if isinstance(sys.stdout, _Output):
        sys.stdout.said = True


def is_file(stream: TextIO) -> bool:
    """Return whether a stream goes into a file, not to a terminal, a pipe or a device."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output, unchanged. Raises OutputLost."""
    if isinstance(sys.stdout, _Output):
        sys.stdout.write_bytes(data)
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


@contextmanager
def with_transaction(tx_hash: str) -> Iterator[None]:
    """Print a transaction after the block, which reads what the transaction changed. The block may fail."""
    try:
        yield
    finally:
        print_result(f"transaction {tx_hash}")


def require_output() -> None:
    """Raise OutputLost if standard output failed before."""
    if isinstance(sys.stdout, _Output) and sys.stdout.fault is not None:
        raise OutputLost from sys.stdout.fault


def end_output(status: int) -> int:
    """Write the rest of standard output. Returns the exit status: not 0 if that fails, or failed before."""
    with suppress(OutputLost, OSError):
        sys.stdout.flush()
    if not isinstance(sys.stdout, _Output) or sys.stdout.fault is None:
        return status
    fault, said = sys.stdout.fault, sys.stdout.said
    if said or fault.errno != errno.EPIPE:  # a reader such as `head` has read enough
        print(f"dps: standard output cannot be written: {fault.strerror}.", file=sys.stderr)
    return status or (OUTPUT_FAILED if said else 1)


LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
CHATTY = ("httpx", "httpcore", "paramiko", "uvicorn.access", "aiosqlite")


def start_logging() -> None:
    """Configure logging, with only warnings of chatty libraries."""
    logging.basicConfig(level=logging.INFO, format=LOG_FORMAT, force=True)
    for name in CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
