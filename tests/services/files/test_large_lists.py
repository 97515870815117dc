"""Lists with many files do not stop the other requests of a process."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import threading
import zipfile
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import suppress

import pytest

from deepgrid.services.files import manifest_cache
from deepgrid.services.files.archives import TURN, TarView, zip_of
from deepgrid.services.files.manifest import FileEntry, Manifest
from deepgrid.services.files.manifest_cache import OWN_BYTES, ManifestCache
from deepgrid.services.files.parts import PartReader

EMPTY = hashlib.sha256().hexdigest()


def list_of(names: Iterable[str]) -> Manifest:
    return Manifest.of([FileEntry(name, 0, 0o644, EMPTY) for name in names])


def answer(content: bytes) -> Awaitable[bytes]:
    done = asyncio.get_running_loop().create_future()
    done.set_result(content)
    return done


async def test_a_list_is_parsed_in_a_thread_and_once_for_all_that_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody with a link to a list of 50,000 files stopped the process for 0.4 s, by each request."""
    threads = list[threading.Thread]()
    unpack = Manifest.unpack

    def noted(packed: bytes) -> Manifest:
        threads.append(threading.current_thread())
        return unpack(packed)

    monkeypatch.setattr(manifest_cache.Manifest, "unpack", noted)
    cache, packed = ManifestCache(), list_of(["a"]).packed
    found = await asyncio.gather(*(cache.get(("bundle", "digest"), lambda: answer(packed)) for _ in range(50)))
    assert [one.entries[0].path for one in found] == ["a"] * 50
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


async def test_lists_are_forgotten_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_cache, "MOST_BYTES", 3 * (OWN_BYTES + 100))
    cache, read = ManifestCache(), list[str]()

    async def get(name: str) -> None:
        def packed() -> Awaitable[bytes]:
            read.append(name)
            return answer(list_of([name]).packed)

        await cache.get((name, "digest"), packed)

    for name in "abcadab":
        await get(name)
    assert read == ["a", "b", "c", "d", "b"]  # when `d` came, `b` had not been used for longest


class Nothing(PartReader):
    """Has the contents of empty files."""

    def __init__(self) -> None:
        """Read no store."""

    async def read(self, start: int, end: int) -> AsyncIterator[bytes]:
        for _ in ():
            yield b""


@pytest.mark.parametrize("kind", ["zip", "tar"])
async def test_an_archive_of_empty_files_lets_others_have_their_turn(kind: str) -> None:
    """A fast reader got all 50,000 headers at once. Other requests waited for 2 s."""
    files, turns = list_of(f"{number:05}" for number in range(10 * TURN)), 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    view = TarView(files)
    content = zip_of(files, Nothing()) if kind == "zip" else view.read(Nothing(), 0, view.size)
    task = asyncio.create_task(other())
    size = sum([len(piece) async for piece in content])
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert size > 10 * TURN * 5
    assert turns >= 10


async def test_an_archive_whose_reader_left_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of its entries was still written, on the event loop."""
    entries, close = list[int](), zipfile.ZipFile.close

    def noted(archive: zipfile.ZipFile) -> None:
        entries.append(len(archive.filelist))
        close(archive)

    monkeypatch.setattr(zipfile.ZipFile, "close", noted)
    content = zip_of(Manifest.of([FileEntry(name, 5, 0o644, EMPTY) for name in "abc"]), Five())
    assert b"a" in await anext(content)
    assert b"b" in await anext(content)
    await content.aclose()  # type: ignore[attr-defined]
    gc.collect()
    assert entries == [0]


class Five(Nothing):
    async def read(self, start: int, end: int) -> AsyncIterator[bytes]:
        yield b"12345"
