"""Reads the results that jobs of `remote` print. A cluster may have changed them, so nothing is ever unpickled.

Each step of reading an Arrow table is checked before the next one, and nothing is decompressed. A table takes no more
memory than its message. Its size after a conversion has a limit too: values without bytes are counted, dictionaries
are measured, and other types with shared bytes are refused.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import re
import struct
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic_core import from_json

from deepgrid.errors import LINES, GridError
from deepgrid.extras import needs
from deepgrid.plain_text import plain

MOST_BYTES = 8 * 1024 * 1024
MOST_UNPACKED_BYTES = 256 * 1024 * 1024
LONGEST_TEXTS = {"type": 100, "message": 2000, "trace": 8000}  # of an exception, as the node's program cuts them

_HEAD = re.compile(r"deepgrid-result ([0-9a-f]{32}) ([a-z]{1,10}) ([0-9]{1,9}) ([0-9a-f]{64})")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


class RemoteError(GridError):
    """A remote call failed, or its result did not arrive.

    Attributes:
        kind: Name of the exception's class on the node; empty if there is no result.
        trace: The traceback on the node, without control characters; empty if there is none. The cluster wrote it.
    """

    def __init__(self, message: str, *, kind: str = "", trace: str = "", next_step: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.kind = plain(kind)
        self.trace = plain(trace, keep=LINES)


def result_in(lines: Iterable[str], token: str) -> Any:
    """Return the result in the output of a job.

    Args:
        lines: The output.
        token: The token that the job was given.

    Returns:
        A JSON value, a NumPy array, a dict of arrays, or a PyArrow table.

    Raises:
        RemoteError: The call failed, or the output has no whole result.
    """
    form, content = _content(iter(lines), token)
    try:
        match form:
            case "json":
                return _json(content)
            case "array" | "npz":
                return _arrays(content, single=form == "array")
            case "arrow":
                return read_table(content, MOST_UNPACKED_BYTES)
            case "error":
                told = _json(content)
                kind, message, trace = (str(told[name])[:most] for name, most in LONGEST_TEXTS.items())
                raise RemoteError(f"The remote call raised {kind}: {message}", kind=kind, trace=trace)
    except GridError:
        raise
    except Exception:  # the libraries raise anything, from zlib.error to MemoryError
        raise RemoteError(f"The result is not readable as {form}.") from None
    raise RemoteError("The result has an unknown format.")


def _content(lines: Iterator[str], token: str) -> tuple[str, bytes]:
    """Return format and bytes of the last result with this token, checked by length and hash."""
    found: tuple[str, bytes] | None = None
    for line in lines:
        head = _HEAD.fullmatch(line)
        if head is None or head[1] != token or int(head[3]) > MOST_BYTES:
            continue
        text: list[str] = []
        room = 2 * int(head[3]) + 1000  # base64 needs four thirds, and a line end per 1,000 characters
        for part in lines:
            if part == f"deepgrid-end {token}":
                break
            room -= len(part) + 1
            if room >= 0:
                text.append(part)
        try:
            content = base64.b64decode("".join(text), validate=True)
        except ValueError:
            continue
        if len(content) == int(head[3]) and hashlib.sha256(content).hexdigest() == head[4]:
            found = head[2], content
    if found is None:
        raise RemoteError("The job's output holds no whole result.", next_step="Read it: `dps job logs ID`.")
    return found


def _json(content: bytes) -> Any:
    """Return a JSON value of at most 200 levels. Raises ValueError."""
    # json.loads has no limit of its own. from_json has, and refuses single surrogates, as in names of some files.
    from_json(_SURROGATE.sub(rb"\\u0020", content))
    return json.loads(content)


def _arrays(content: bytes, *, single: bool) -> Any:
    """Return the arrays of an archive. Raises RemoteError for a result that is too large when unpacked."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        if sum(entry.file_size for entry in entries) > MOST_UNPACKED_BYTES:
            raise RemoteError(f"The result is larger than {MOST_UNPACKED_BYTES // 1024**2} MiB when unpacked.")
        values = {entry.filename.removesuffix(".npy"): _array(archive, entry) for entry in entries}
    return values["result"] if single else values


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Any:
    with needs("remote"):
        from numpy.lib import format

    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # LZMA takes memory by its header
        raise RemoteError("The result is compressed by a method that is not accepted.")
    with archive.open(entry) as file:
        array = format.read_array(file, allow_pickle=False)
    if math.prod(max(1, length) for length in array.shape) > MOST_UNPACKED_BYTES:  # also elements of 0 bytes
        raise RemoteError(f"The result has the shape {str(array.shape)[:60]}, which is too large.")
    return array


DICTIONARY_BATCH, RECORD_BATCH = 2, 3  # kinds of messages in Arrow's format
EXTENSION = b"ARROW:extension:"
OLD_COMPRESSION = b"ARROW:experimental_compression"  # as Arrow 0.17 marked it


def read_table(content: bytes, most_bytes: int) -> Any:
    """Return the table in an Arrow stream. A value without bytes, such as a null, counts as one byte.

    Raises:
        RemoteError: The table is compressed, too large, or of a type that is not accepted.
        Exception: The stream is damaged. PyArrow raises many classes.
    """
    with needs("remote"):
        import pyarrow.ipc

    messages = list(pyarrow.ipc.MessageReader.open_stream(io.BytesIO(content)))
    if EXTENSION in messages[0].metadata.to_pybytes():  # a library of this process may register code for it
        raise RemoteError("The result is a table with an extension type. Only plain types are accepted.")
    if sum(_values_in(message) for message in messages[1:]) > most_bytes:
        raise _too_large()
    with pyarrow.ipc.open_stream(io.BytesIO(content)) as reader:
        for field in reader.schema:
            _check_type(field.type, is_column=True)
        table = reader.read_all()
    parts = [part for column in table.columns for part in column.chunks if pyarrow.types.is_dictionary(part.type)]
    if sum(part.dictionary.get_total_buffer_size() for part in parts) > most_bytes:  # each part validates its own again
        raise _too_large()
    table.validate(full=True)
    if sum(_bytes_used(part) for part in parts) > most_bytes:
        raise _too_large()
    return table


def _values_in(message: Any) -> int:
    """Count the values of a message. Raises RemoteError unless each byte of its body has at most one use."""
    head = _Head(message.metadata.to_pybytes())
    root = head.follow(0)
    kind, batch = head.bytes[head.field(root, 1)], head.follow(head.field(root, 2))
    if kind == DICTIONARY_BATCH:
        if (delta := head.field(batch, 2)) and head.bytes[delta]:
            raise RemoteError("The result is a table with a dictionary in parts, which is not accepted.")
        batch = head.follow(head.field(batch, 1))
    elif kind != RECORD_BATCH:
        raise RemoteError("The result is an Arrow stream with messages that do not belong to a table.")
    if head.field(batch, 3) or OLD_COMPRESSION in head.bytes:
        raise RemoteError("The result is a compressed Arrow table. Only uncompressed ones are accepted.")
    nodes, buffers = head.pairs(batch, 1), head.pairs(batch, 2)
    if any(size < 0 for _, size in buffers) or sum(size for _, size in buffers) > message.body.size:
        raise _too_large()
    return sum(max(0, length) for length, _ in nodes)


def _check_type(kind: Any, *, is_column: bool = False) -> None:
    """Raise RemoteError for a type whose values may share bytes. A column may be a dictionary."""
    from pyarrow import types

    if is_column and types.is_dictionary(kind) and not types.is_nested(kind.value_type):
        _check_type(kind.value_type)
        return
    numbers = types.is_primitive, types.is_null, types.is_decimal
    texts = types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_fixed_size_binary
    branches = types.is_struct, types.is_map, types.is_list, types.is_large_list, types.is_fixed_size_list
    if any(is_kind(kind) for is_kind in branches):
        for number in range(kind.num_fields):
            _check_type(kind.field(number).type)
    elif not any(is_kind(kind) for is_kind in (*numbers, *texts)):
        raise RemoteError(f"The result is a table with the type {str(kind)[:60]}, which is not accepted.")


def _bytes_used(part: Any) -> int:
    """Return the bytes of the texts of a dictionary, each as often as it is used."""
    from pyarrow import compute, lib

    try:
        sizes = compute.binary_length(part.dictionary)
    except lib.ArrowNotImplementedError:  # numbers
        return 0
    return int(compute.sum(sizes.cast("int64").take(part.indices)).as_py() or 0)


def _too_large() -> RemoteError:
    return RemoteError("The result is a table that would take too much memory.")


class _Head:
    """The metadata of a message, a FlatBuffer. PyArrow has checked its offsets."""

    def __init__(self, content: bytes) -> None:
        self.bytes = content

    def follow(self, at: int) -> int:
        """Return the place that the offset at `at` leads to."""
        return at + int(struct.unpack_from("<I", self.bytes, at)[0])

    def field(self, table: int, number: int) -> int:
        """Return the place of a field of a table; 0 if the table leaves it out."""
        index = table - struct.unpack_from("<i", self.bytes, table)[0]
        (size,) = struct.unpack_from("<H", self.bytes, index)
        at = 4 + 2 * number
        (offset,) = struct.unpack_from("<H", self.bytes, index + at) if at < size else (0,)
        return table + offset if offset else 0

    def pairs(self, table: int, number: int) -> list[tuple[int, int]]:
        """Return a field that is a vector of pairs of 64-bit numbers."""
        if not (at := self.field(table, number)):
            return []
        at = self.follow(at)
        (count,) = struct.unpack_from("<I", self.bytes, at)
        return list(struct.iter_unpack("<qq", self.bytes[at + 4 : at + 4 + 16 * count]))
