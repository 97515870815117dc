"""Reads the results that jobs of `remote` print. A cluster may have changed them, so nothing is ever unpickled."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

from deepgrid.errors import GridError

MOST_BYTES = 8 * 1024 * 1024
MOST_UNPACKED_BYTES = 256 * 1024 * 1024

_HEAD = re.compile(r"deepgrid-result ([0-9a-f]{32}) ([a-z]{1,10}) ([0-9]{1,9}) ([0-9a-f]{64})")


class RemoteError(GridError):
    """A remote call failed, or its result did not arrive.

    Attributes:
        kind: Name of the exception's class on the node; empty if there is no result.
        trace: The traceback on the node; empty if there is none. Text of the cluster: print it, nothing more.
    """

    def __init__(self, message: str, *, kind: str = "", trace: str = "", next_step: str = "") -> None:
        super().__init__(message, next_step=next_step)
        self.kind = kind
        self.trace = trace


def result_in(lines: Iterable[str], token: str) -> Any:
    """The result in the output of a job.

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
                return json.loads(content)
            case "array" | "npz":
                return _arrays(content, single=form == "array")
            case "arrow":
                return _table(content)
            case "error":
                told = json.loads(content)
                raise RemoteError(
                    f"The remote call raised {told['type']}: {told['message']}",
                    kind=str(told["type"]), trace=str(told["trace"]),
                )  # fmt: skip
    except (ValueError, KeyError, TypeError, OSError, zipfile.BadZipFile):
        raise RemoteError(f"The result is not readable as {form}.") from None
    raise RemoteError("The result has an unknown format.")


def _content(lines: Iterator[str], token: str) -> tuple[str, bytes]:
    """Format and bytes of the last result with this token, checked by length and hash."""
    found: tuple[str, bytes] | None = None
    for line in lines:
        head = _HEAD.fullmatch(line)
        if head is None or head[1] != token or int(head[3]) > MOST_BYTES:
            continue
        text: list[str] = []
        for part in lines:
            if part == f"deepgrid-end {token}":
                break
            text.append(part)
        try:
            content = base64.b64decode("".join(text), validate=True)
        except binascii.Error:
            continue
        if len(content) == int(head[3]) and hashlib.sha256(content).hexdigest() == head[4]:
            found = head[2], content
    if found is None:
        raise RemoteError("The job's output holds no whole result.", next_step="Read it: `dps job logs ID`.")
    return found


def _arrays(content: bytes, *, single: bool) -> Any:
    import numpy

    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > MOST_UNPACKED_BYTES:
            raise RemoteError(f"The result is larger than {MOST_UNPACKED_BYTES // 1024**2} MiB when unpacked.")
    with numpy.load(io.BytesIO(content), allow_pickle=False) as arrays:
        values = {name: arrays[name] for name in arrays.files}
    return values["result"] if single else values


def _table(content: bytes) -> Any:
    import pyarrow

    with pyarrow.ipc.open_stream(io.BytesIO(content)) as reader:
        return reader.read_all()
