"""Parts of files: read from the disk, checked in transit, and encrypted in reused memory."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore

from deepgrid.client.files import scan
from deepgrid.client.files.local_files import SMALL_BYTES
from deepgrid.errors import InputError, ServiceError
from deepgrid.sbatch.file_addresses import CHECKSUM_HEADER, checksum_of
from deepgrid.services.files.buffers import Buffers
from deepgrid.services.files.manifest import Manifest
from deepgrid.services.files.parts import OVERHEAD, Parts
from tests.services.files.support import FileGrid, filled, put


def test_any_piece_of_the_contents_is_read_across_files(tmp_path: Path) -> None:
    files = scan([filled(tmp_path / "d", {"a": b"abc", "b/empty": b"", "c": os.urandom(70_000), "d": b"x"})])
    whole = b"".join(place.read_bytes() for place in files.places)
    for start, size in ((0, len(whole)), (1, 2), (2, 5), (3, 70_000), (70_001, 3)):
        target = bytearray(size)
        files.read_into(memoryview(target), start)
        assert target == whole[start : start + size]


@pytest.mark.parametrize("content", [b"abc", b"ABCDEF", b"abcdefg"])
def test_a_file_that_was_changed_is_an_error(tmp_path: Path, content: bytes) -> None:
    """A file of the same size was stored under the checksum of its earlier content, and given to each later job."""
    files = scan([filled(tmp_path / "d", {"a": b"abcdef"})])
    write_later(tmp_path / "d/a", content)
    with pytest.raises(InputError, match="changed while it was sent"):
        files.read_into(memoryview(bytearray(6)), 0)


def test_a_file_that_changes_while_its_checksum_is_made_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = filled(tmp_path / "d", {"a": bytes(SMALL_BYTES + 1)})
    digest = hashlib.file_digest

    def meanwhile(file: Any, name: str) -> Any:
        found = digest(file, name)
        write_later(folder / "a", b"x" * (SMALL_BYTES + 1))
        return found

    monkeypatch.setattr(hashlib, "file_digest", meanwhile)
    with pytest.raises(InputError, match="changed while it was sent"):
        scan([folder])


def write_later(place: Path, content: bytes) -> None:
    """Write a file with a time of change that differs on any file system."""
    before = place.stat().st_mtime_ns
    place.write_bytes(content)
    os.utime(place, ns=(before + 10**9, before + 10**9))


async def test_a_damaged_part_is_refused_by_either_checksum(files: FileGrid) -> None:
    text = Manifest.parse(f"4 600 {hashlib.sha256(b'good').hexdigest()}  x\0".encode()).text
    client = files.client()
    address = client.url((await client.announce(hashlib.sha256(text).hexdigest(), 4, 1)).address)
    assert (await put(address + "/manifest", text)).status_code == 204
    for checksum in (checksum_of(b"good"), hashlib.sha256(b"good").hexdigest()):
        refused = await put(address + "/parts/0", b"evil", **{CHECKSUM_HEADER: checksum})
        assert (refused.status_code, "checksum" in refused.text) == (422, True)
        assert (await put(address + "/parts/0", b"good", **{CHECKSUM_HEADER: checksum})).status_code == 204


async def test_memory_that_is_used_again_leaves_nothing_of_its_last_use() -> None:
    parts, buffers = Parts(MemoryStore(), bytes(32)).of("ab" * 16, "cd" * 32), Buffers(1, 1000 + OVERHEAD)
    for number, content in enumerate((bytes(1000), b"short", os.urandom(1000))):
        async with buffers.borrow() as buffer:
            await parts.put(number, memoryview(content), buffer)
        assert await parts.get(number) == content
    assert await parts.sizes() == {"00000000": 1000, "00000001": 5, "00000002": 1000}


async def test_a_buffer_is_not_lent_again_after_an_error() -> None:
    buffers = Buffers(1, 10)
    with pytest.raises(ServiceError):
        async with buffers.borrow() as first:
            raise ServiceError("the store does not answer")
    async with buffers.borrow() as second:
        assert second is not first
        waiting = asyncio.create_task(_borrowed(buffers))
        await asyncio.sleep(0)
        assert not waiting.done()
    assert await waiting is second


async def _borrowed(buffers: Buffers) -> bytearray:
    async with buffers.borrow() as buffer:
        return buffer
