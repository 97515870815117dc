"""A cluster answers calls of `remote` with results that harm the customer who reads them."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import struct
import subprocess
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pyarrow
import pyarrow.ipc
import pytest
from numpy.lib.format import magic, write_array_header_1_0

from deepgrid.recipes.remote import RemoteError
from deepgrid.recipes.results import MOST_BYTES, result_in

TOKEN = "ab" * 16
MIB = 1024**2
CLUSTER = "a malicious provider"


def printed(form: str, content: bytes) -> list[str]:
    """Return the lines with which a node sends a result."""
    assert len(content) <= MOST_BYTES
    text = base64.b64encode(content).decode()
    head = f"deepgrid-result {TOKEN} {form} {len(content)} {hashlib.sha256(content).hexdigest()}"
    return [head, *(text[at : at + 1000] for at in range(0, len(text), 1000)), f"deepgrid-end {TOKEN}"]


def refusal(form: str, content: bytes) -> RemoteError:
    """Return the error that refuses a result. Checks that it is one sentence that is safe to print."""
    with pytest.raises(RemoteError) as caught:
        result_in(printed(form, content), TOKEN)
    error = caught.value
    assert error.message.isprintable()
    assert len(error.message) < 200
    assert error.message.startswith("The result ")
    return error


def stream(*batches: Any, compression: str | None = None, deltas: bool = False) -> bytes:
    """Return an Arrow stream of these batches."""
    sink = io.BytesIO()
    options = pyarrow.ipc.IpcWriteOptions(
        compression=compression, emit_dictionary_deltas=deltas, allow_64bit=True
    )  # fmt: skip
    with pyarrow.ipc.new_stream(sink, batches[0].schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def batch(column: Any) -> Any:
    return pyarrow.record_batch({"x": column})


def patched(content: bytes, old: bytes, new: bytes) -> bytes:
    """Replace the one `old` in `content` by `new`, which has the same length."""
    assert content.count(old) == 1
    assert len(old) == len(new)
    return content.replace(old, new)


@pytest.mark.attack(
    "a compressed Arrow result that grows from 61 KB to 2 GB", attacker=CLUSTER, gain="an error instead of the result",
    defence="compressed tables are refused by their metadata, before anything is unpacked",
)  # fmt: skip
@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_compressed_table_is_not_unpacked(codec: str) -> None:
    pool = pyarrow.default_memory_pool()
    zeros = batch(pyarrow.array(numpy.zeros(8 * MIB, numpy.int64)))  # 64 MiB
    content = stream(*[zeros] * 10, compression=codec)
    del zeros
    assert len(content) < 4 * MIB
    before = pool.bytes_allocated()
    with pytest.raises(RemoteError, match="compressed Arrow table"):
        result_in(printed("arrow", content), TOKEN)
    assert pool.bytes_allocated() - before < MIB


@pytest.mark.attack(
    "forged offsets and indices in an Arrow result, which show 4 KB of the customer's memory or end the process",
    attacker=CLUSTER, gain="an error instead of the result", defence="tables are validated in full before use",
)  # fmt: skip
@pytest.mark.parametrize("offset", [4096, 2**31 - 1, -1])
def test_forged_offsets_show_nothing(offset: int) -> None:
    texts = stream(batch(pyarrow.array(["a", "bc", "def"])))
    forged = patched(texts, struct.pack("<4i", 0, 1, 3, 6), struct.pack("<4i", 0, 1, 3, offset))
    refusal("arrow", forged)
    lists = stream(batch(pyarrow.array([[7], [8, 9]])))
    refusal("arrow", patched(lists, struct.pack("<3i", 0, 1, 3), struct.pack("<3i", 0, 1, offset)))
    used = batch(pyarrow.DictionaryArray.from_arrays(pyarrow.array([1, 0, 1, 1], "int32"), ["x", "y"]))
    refusal("arrow", patched(stream(used), struct.pack("<4i", 1, 0, 1, 1), struct.pack("<4i", 1, 0, 1, offset)))


def test_text_that_is_not_utf_8_is_refused() -> None:
    refusal("arrow", patched(stream(batch(pyarrow.array(["abcdefgh"]))), b"abcdefgh", b"abcd\xff\xfegh"))


def shared() -> bytes:
    """100 columns that claim the same bytes."""
    columns = {f"c{number}": numpy.full(1000, number) for number in range(100)}
    content = bytearray(stream(pyarrow.record_batch(columns)))
    for number in range(2, 100):
        where = struct.pack("<qq", 8000 * number, 8000)
        assert content.count(where) == 1
        at = content.index(where)
        content[at : at + 16] = struct.pack("<qq", 0, 800_000)
    return bytes(content)


def few_bytes() -> Iterator[tuple[str, bytes]]:
    """Yield tables of few bytes that grow to gigabytes when they are used."""
    long = "x" * MIB
    nulls = pyarrow.Array.from_buffers(pyarrow.null(), 2**40, [None])
    empty = pyarrow.Array.from_buffers(pyarrow.binary(0), 2**40, [None, pyarrow.py_buffer(b"")])
    yield "nulls", stream(batch(nulls))
    yield "nulls in a struct", stream(batch(pyarrow.StructArray.from_arrays([nulls], ["y"])))
    yield "texts of 0 bytes", stream(batch(empty))
    uses = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 10_000, "int32"), [long])
    yield "dictionary", stream(batch(uses))
    nested = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 10_000, "int32"), pyarrow.array([[long]]))
    yield "dictionary of lists", stream(batch(nested))
    yield "dictionary in a list", stream(batch(pyarrow.ListArray.from_arrays([0, len(uses)], uses)))
    parts = [pyarrow.DictionaryArray.from_arrays(pyarrow.array([0], "int8"), [long])] * 2000
    yield "dictionary in many batches", stream(*[batch(part) for part in parts])
    runs = pyarrow.RunEndEncodedArray.from_arrays(pyarrow.array([2**31 - 1], "int32"), pyarrow.array([long]))
    yield "runs", stream(batch(runs))
    yield "buffers that share bytes", shared()
    if hasattr(pyarrow, "ListViewArray"):
        views = pyarrow.ListViewArray.from_arrays([0] * 10_000, [MIB] * 10_000, numpy.zeros(MIB, numpy.int8))
        yield "list views", stream(batch(views))


@pytest.mark.attack(
    "a small Arrow result that grows to gigabytes when it is used: nulls, runs, views, dictionaries, shared buffers",
    attacker=CLUSTER, gain="256 MiB of memory",
    defence="values are counted before they are read; types whose values share bytes are refused or measured",
)  # fmt: skip
@pytest.mark.parametrize(("content"), [pytest.param(content, id=name) for name, content in few_bytes()])
def test_a_small_table_stays_small(content: bytes) -> None:
    refusal("arrow", content)


def test_a_dictionary_in_parts_is_refused() -> None:
    words = [f"word {number}" for number in range(1000)]
    parts = [
        batch(pyarrow.DictionaryArray.from_arrays(pyarrow.array([most - 1], "int32"), words[:most]))
        for most in range(100, 1000, 100)
    ]  # fmt: skip
    refusal("arrow", stream(*parts, deltas=True))


class Unpickling(pyarrow.ExtensionType):  # type: ignore[misc]
    """A type as some libraries register it: a table that names it makes the library read its bytes."""

    read: bytes | None = None

    def __init__(self) -> None:
        super().__init__(pyarrow.int64(), "test.unpickling")

    def __arrow_ext_serialize__(self) -> bytes:
        return b"of the cluster"

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: Any, serialized: bytes) -> Unpickling:
        Unpickling.read = serialized
        return cls()


@pytest.mark.attack(
    "an Arrow result with an extension type whose library runs code at the customer, such as unpickling",
    attacker=CLUSTER, gain="an error instead of the result",
    defence="extension types are refused before their code runs",
)  # fmt: skip
def test_no_code_of_an_extension_type_runs() -> None:
    pyarrow.register_extension_type(Unpickling())
    try:
        content = stream(batch(pyarrow.ExtensionArray.from_storage(Unpickling(), pyarrow.array([1]))))
        Unpickling.read = None
        refusal("arrow", content)
        assert Unpickling.read is None
    finally:
        pyarrow.unregister_extension_type("test.unpickling")


def npz(header: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        archive.writestr("result.npy", header)
    return sink.getvalue()


def npy(shape: tuple[int, ...], kind: str) -> bytes:
    sink = io.BytesIO()
    write_array_header_1_0(sink, {"descr": kind, "fortran_order": False, "shape": shape})
    return sink.getvalue()


@pytest.mark.attack(
    "array results with absurd shapes, forged headers, encrypted, damaged or oddly compressed archives, and texts"
    " in their place",
    attacker=CLUSTER, gain="an error instead of the result",
    defence="arrays have at most 256 Mi elements and 256 MiB; any failure to read is one error",
)  # fmt: skip
@pytest.mark.parametrize(
    "member",
    [
        npy((2**60,), "<f8"), npy((2**45,), "|V0"), npy((2**40, 0), "<f8"), npy((10**9, 10**9, 10**9), "|u1"),
        npy((1,), "<f8"), magic(1, 0) + struct.pack("<H", 9000) + b"(" * 9000,
        magic(1, 0) + struct.pack("<H", 20) + b"'''" + b" " * 17, b"no array", magic(9, 9),
    ],
    ids=["larger than memory", "no bytes", "no elements", "large", "cut", "deep", "open text", "text", "version"],
)  # fmt: skip
@pytest.mark.parametrize("form", ["array", "npz"])
def test_absurd_arrays_are_errors(form: str, member: bytes) -> None:
    refusal(form, npz(member))


def test_bad_archives_are_errors(tmp_path: Path) -> None:
    sink = io.BytesIO()
    numpy.save(sink, numpy.arange(1000))
    honest = npz(sink.getvalue())
    assert numpy.array_equal(result_in(printed("array", honest), TOKEN), numpy.arange(1000))
    start = honest.index(b"result.npy") + len(b"result.npy")
    refusal("array", honest[:start] + b"\xff" * 100 + honest[start + 100 :])
    (tmp_path / "result.npy").write_bytes(sink.getvalue())
    subprocess.run(["zip", "-q", "-P", "secret", "sealed.zip", "result.npy"], cwd=tmp_path, check=True)
    refusal("array", (tmp_path / "sealed.zip").read_bytes())
    refusal("array", npz(sink.getvalue(), zipfile.ZIP_LZMA))
    refusal("array", honest[:-30])


@pytest.mark.attack(
    "JSON of 100,000 levels as a result or as an exception, which ends a process with a high recursion limit",
    attacker=CLUSTER, gain="an error instead of the result", defence="JSON has at most 200 levels",
)  # fmt: skip
@pytest.mark.parametrize("form", ["json", "error"])
def test_deep_json_is_an_error(form: str) -> None:
    refusal(form, b"[" * 100_000 + b"]" * 100_000)
    refusal(form, b'{"type": ' * 100_000 + b"1" + b"}" * 100_000)
    refusal(form, b"[[]")
    refusal(form, b"\xff")


def test_any_json_of_a_node_is_read() -> None:
    for value in ("\udcff \\ud800", {"a\udc80": [float("inf")]}, -(2**70), json.loads("[" * 150 + "]" * 150)):
        assert result_in(printed("json", json.dumps(value).encode()), TOKEN) == value


@pytest.mark.attack(
    "control sequences and megabytes of text in the exception of a remote call", attacker=CLUSTER,
    gain="spaces on the screen", defence="control characters become spaces in all texts of an error; texts are cut",
)  # fmt: skip
def test_texts_of_exceptions_are_harmless() -> None:
    text = "harmless \x1b[2J\x1b]0;title\x07\x9b2J\r\u202e\u2028 " * 10_000
    content = json.dumps({"type": text, "message": text, "trace": f"Traceback\n{text}"}).encode()
    with pytest.raises(RemoteError) as caught:
        result_in(printed("error", content), TOKEN)
    error = caught.value
    texts = [error.kind, error.message, error.trace, str(error)]
    assert all("harmless" in one and one.replace("\n", "").isprintable() for one in texts)
    assert max(map(len, texts)) < 10_000
    for wrong in ("[1]", "7", '{"type": "a"}'):
        refusal("error", wrong.encode())


@pytest.mark.attack(
    "a result without an end: output is kept in memory while its end is awaited", attacker=CLUSTER,
    gain="some MiB of memory", defence="no more lines are kept than a result of the announced size has",
)  # fmt: skip
def test_a_result_without_an_end_takes_no_memory() -> None:
    head = f"deepgrid-result {TOKEN} json 1000 {'0' * 64}"

    def lines() -> Iterator[str]:
        yield head
        for number in range(100_000):
            yield f"{number:01000}"

    tracemalloc.start()
    try:
        with pytest.raises(RemoteError, match="no whole result"):
            result_in(lines(), TOKEN)
        assert tracemalloc.get_traced_memory()[1] < 10 * MIB
    finally:
        tracemalloc.stop()
    with pytest.raises(RemoteError, match="no whole result"):  # not only ASCII
        result_in([head, "\u2603", f"deepgrid-end {TOKEN}"], TOKEN)
