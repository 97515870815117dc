"""Reads the results that jobs of `remote` print. A cluster may have changed them, so nothing is ever unpickled."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic_core import from_json

from deepgrid.errors import GridError
from deepgrid.extras import needs
from deepgrid.recipes.arrow_tables import read_table
from deepgrid.recipes.errors import RemoteError

MOST_BYTES = 8 * 1024 * 1024
MOST_UNPACKED_BYTES = 256 * 1024 * 1024
LONGEST_TEXTS = {"type": 100, "message": 2000, "trace": 8000}  # of an exception, as the node's program cuts them

_HEAD = re.compile(r"deepgrid-result ([0-9a-f]{32}) ([a-z]{1,10}) ([0-9]{1,9}) ([0-9a-f]{64})")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")


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
    """Format and bytes of the last result with this token, checked by length and hash."""
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
    """A JSON value of at most 200 levels. Raises ValueError."""
    # json.loads has no limit of its own. from_json has, and refuses single surrogates, as in names of some files.
    from_json(_SURROGATE.sub(rb"\\u0020", content))
    return json.loads(content)


def _arrays(content: bytes, *, single: bool) -> Any:
    """The arrays of an archive. Raises RemoteError for one that is too large when unpacked."""
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
