"""A cluster sends an output that harms the customer who downloads it."""

from __future__ import annotations

import io
import lzma
import struct
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from deepgrid.client.download import download_output
from deepgrid.errors import InputError, ServiceError
from deepgrid.workflow.models.transport import TransportData
from tests.client.download.support import QUICK, FileServer

MIB = 1024**2
CLUSTER = "a malicious provider"
OWNER = b"ux\x0b\x00" + bytes(11)  # how the `zip` of a job marks its entries


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer() as running:
        yield running


async def download(server: FileServer, content: bytes, to: Path) -> list[Path]:
    """Fetch this file as the output of a job."""
    server.files["/x"] = content
    output = TransportData.model_validate({"http": {"url": f"{server.url}/x"}})
    return await download_output(output, to, None, QUICK)


def head(name: bytes, method: int, crc: int, packed: int, size: int) -> bytes:
    """Return the header in front of an entry."""
    numbers = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 33, crc, packed, size, len(name), 0)
    return b"PK\x03\x04" + numbers + name


def listed(name: bytes, method: int, crc: int, packed: int, size: int, at: int) -> bytes:
    """Return an entry in the list at the end of an archive."""
    numbers = struct.pack("<HHHHHHIII", 20, 20, 0, method, 0, 33, crc, packed, size)
    return b"PK\x01\x02" + numbers + struct.pack("<HHHHHII", len(name), len(OWNER), 0, 0, 0, 0, at) + name + OWNER


def end(index: bytes, count: int, at: int) -> bytes:
    count = min(count, 0xFFFF)
    return b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, len(index), at, 0)


@pytest.mark.attack(
    "an archive that names methods of compression with forged properties, such as 2 GB of memory for LZMA",
    attacker=CLUSTER, gain="an error instead of the output",
    defence="only archives made like a job's `zip` are unpacked",
)  # fmt: skip
@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
async def test_other_methods_are_not_unpacked(server: FileServer, tmp_path: Path, method: int) -> None:
    properties = lzma._encode_filter_properties({"id": lzma.FILTER_LZMA1, "dict_size": 2**31})  # type: ignore[attr-defined]
    packed = b"\x09\x04" + struct.pack("<H", len(properties)) + properties + b"\xff" * 100
    entry = (b"a", method, 0, len(packed), 1000)
    index = listed(*entry, 0)
    content = head(*entry) + packed
    with pytest.raises(ServiceError, match="is damaged"):
        await download(server, content + index + end(index, 1, len(content)), tmp_path)


@pytest.mark.attack(
    "an archive with a list of a million entries, which takes gigabytes as soon as it is opened", attacker=CLUSTER,
    gain="an archive that stays packed", defence="the list of an archive has at most 32 MiB",
)  # fmt: skip
async def test_a_long_list_of_entries_is_not_read(server: FileServer, tmp_path: Path) -> None:
    entry = (b"a", zipfile.ZIP_STORED, 0, 0, 0)
    record = listed(*entry, 0)
    count = 33 * MIB // len(record)
    content = head(*entry) + record * count + end(record * count, count, len(head(*entry)))
    tracemalloc.start()
    try:
        (path,) = await download(server, content, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 100 * MIB
    finally:
        tracemalloc.stop()
    assert path.stat().st_size == len(content)


@pytest.mark.attack(
    "files with thousands of folders in their names, 10 s of work each", attacker=CLUSTER,
    gain="an error instead of the output", defence="a file is in at most 100 folders",
)  # fmt: skip
async def test_names_with_thousands_of_folders_take_no_time(server: FileServer, tmp_path: Path) -> None:
    def archive(folders: int) -> bytes:
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w") as one:
            for number in range(20):
                info = zipfile.ZipInfo(f"{number}/" + "a/" * folders + "b")
                info.extra = OWNER
                one.writestr(info, b"")
        return sink.getvalue()

    for folders in (30_000, 2_000):
        with pytest.raises(InputError, match=f"is in {folders + 1} folders"):
            await download(server, archive(folders), tmp_path / str(folders))
        assert [one.name for one in (tmp_path / str(folders)).iterdir()] == ["x"]
    deep = await download(server, archive(90), tmp_path / "90")
    assert len(deep) == 20
