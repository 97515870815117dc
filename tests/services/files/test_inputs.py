"""Inputs that are sent again: a study finds its jobs by them, so they keep their number."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select

from deepgrid.client.files import scan
from deepgrid.errors import InputError, ServiceError
from deepgrid.services.cleanup import Retention, clean_up
from deepgrid.services.files.bundles import Bundles
from deepgrid.services.files.manifest import FileEntry, Manifest
from deepgrid.services.files.parts import MANIFEST, OVERHEAD, BundleParts
from deepgrid.services.files.tables import BundleUse
from deepgrid.services.refusal import Refusal
from tests.services.files.support import FileGrid, filled, grid_job, put


def room_of(grid: FileGrid) -> Bundles:
    assert grid.services.context.files is not None
    return grid.services.context.files


async def test_files_that_are_sent_again_get_the_number_that_they_had(files: FileGrid, tmp_path: Path) -> None:
    """It was random, and is part of a definition's hash: a study that was started again paid for its jobs again."""
    data = filled(tmp_path / "data", {"a": b"one", "run": b"two"})
    (data / "run").chmod(0o755)
    number = await files.send(data)
    assert await files.send(data, name="rival") != number
    files.services.clock.ahead_s = 40 * 24 * 3600
    await clean_up(files.services.context, Retention())
    files.services.clock.ahead_s = 0
    assert (await files.client().usage()).used == 0
    (data / "a").chmod(0o600)  # as another umask does
    (data / "run").chmod(0o775)
    assert await files.send(data) == number
    (data / "run").chmod(0o644)
    assert await files.send(data) != number


async def test_files_are_not_begun_again_while_they_are_deleted(
    files: FileGrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion would take the new parts with the old ones."""
    data = filled(tmp_path / "data", ["a"])
    number, manifest = await files.send(data), scan([data]).manifest
    room, begun, go_on = room_of(files), asyncio.Event(), asyncio.Event()
    forget = room.parts.forget

    async def slowly(bundle: str, keep: str = "") -> None:
        begun.set()
        await go_on.wait()
        await forget(bundle, keep)

    monkeypatch.setattr(room.parts, "forget", slowly)
    deleting = asyncio.create_task(room.delete(number))
    await begun.wait()
    with pytest.raises(ServiceError, match="are being deleted") as caught:
        await files.client().announce(manifest.digest, manifest.size, 1)
    assert caught.value.transient
    go_on.set()
    await deleting
    said = await files.client().announce(manifest.digest, manifest.size, 1)
    assert (said.id, said.finished) == (number, False)


@pytest.mark.parametrize("what", ["a deletion by another process", "a part that came after the deletion"])
async def test_files_that_are_sent_again_outlive_a_slow_deletion(
    files: FileGrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Both had the same folder: the slow process deleted the new parts, and a whole bundle had no contents."""
    data = filled(tmp_path / "data", ["a"])
    number, room = await files.send(data), room_of(files)
    begun, go_on, forget, old = asyncio.Event(), asyncio.Event(), room.parts.forget, await room.require(number)

    async def slowly(bundle: str, keep: str = "") -> None:
        begun.set()
        await go_on.wait()
        await forget(bundle, keep)

    late = what == "a part that came after the deletion"
    if late:
        await room.delete(number)
    with monkeypatch.context() as patched:
        patched.setattr(room.parts, "forget", slowly)
        late_part = partial(room.store_part, old, 0, memoryview(b"a"), bytearray(1 + OVERHEAD))
        slow = asyncio.create_task(late_part() if late else room.delete(number))
        await begun.wait()
    await room.delete(number)
    assert await files.send(data) == number
    await files.services.customer.upload(grid_job(":", {"grid": {"files": number}}))
    go_on.set()
    assert [type(one) for one in await asyncio.gather(slow, return_exceptions=True)] == [
        Refusal if late else type(None)
    ]
    new = await room.require(number, finished=True)
    assert await room.content(new).missing(new.size) == []
    assert await room.content(new).get(MANIFEST)
    async with room.database.read() as session:
        assert (await session.scalars(select(BundleUse.bundle))).all() == [number]
    await room.delete(number)
    assert not [path for path in files.store.rglob("*") if path.is_file()]


async def test_an_upload_is_not_finished_with_the_parts_of_a_deleted_one(
    files: FileGrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = filled(tmp_path / "data", ["a"])
    number, manifest, room = await files.send(data), scan([data]).manifest, room_of(files)
    missing = BundleParts.missing

    async def replaced(parts: BundleParts, size: int) -> list[int]:
        found = await missing(parts, size)
        await room.delete(number)
        await files.client().announce(manifest.digest, manifest.size, 1)
        return found

    monkeypatch.setattr(BundleParts, "missing", replaced)
    with pytest.raises(Refusal, match="another upload to the same place"):
        await room.finish(number)


async def test_the_clean_up_keeps_files_that_were_used_since_it_looked(
    files: FileGrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads 200 rows, and a store may take minutes to delete the first of them."""
    first, second = sorted([await files.send(filled(tmp_path / name, [name])) for name in "ab"])
    room, forget = room_of(files), room_of(files).parts.forget

    async def meanwhile(bundle: str, keep: str = "") -> None:
        await room.touch(second)
        await forget(bundle, keep)

    monkeypatch.setattr(room.parts, "forget", meanwhile)
    files.services.clock.ahead_s = 40 * 24 * 3600
    await clean_up(files.services.context, Retention())
    await room.require(second, finished=True)
    with pytest.raises(Refusal):
        await room.require(first)


async def test_an_output_is_not_begun_again_while_it_is_deleted(
    files: FileGrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place stays while the job runs. The deletion took the list of the new files."""
    await files.claimed(grid_job(":"))
    place, manifest, room = (
        (await files.addresses()).output,
        scan([filled(tmp_path / "data", ["a"])]).manifest,
        room_of(files),
    )
    assert (await put(place + "/manifest", manifest.text)).status_code == 204
    forget = room.parts.forget

    async def failing(bundle: str, keep: str = "") -> None:
        raise ServiceError("The store of files does not answer.")

    monkeypatch.setattr(room.parts, "forget", failing)
    with pytest.raises(ServiceError):
        await room.delete_of(files.services.chain.jobs_by_id[1])
    assert (await put(place + "/manifest", manifest.text)).status_code == 503
    monkeypatch.setattr(room.parts, "forget", forget)
    await clean_up(files.services.context, Retention())  # it completes the deletion
    assert not [path for path in files.store.rglob("*") if path.is_file()]
    assert (await put(place + "/manifest", manifest.text)).status_code == 204


async def test_lists_of_files_count_for_the_quota(files: FileGrid, tmp_path: Path) -> None:
    """Three lists of empty files took 35 MiB of a quota of 0.1 MiB, with 500 times the files of the terms."""
    (tmp_path / "terms.json").write_text(json.dumps({"quota_gib": 100_000 / 1024**3, "files": 10}))
    room_of(files).policy._path = tmp_path / "terms.json"

    async def sent(count: int, announced: int) -> int:
        names = ["/".join(os.urandom(120).hex() for _ in range(10)) for _ in range(count)]
        manifest = Manifest.of([FileEntry(name, 0, 0o644, hashlib.sha256().hexdigest()) for name in names])
        client = files.client()
        said = await client.announce(manifest.digest, 0, announced)
        answer = await put(client.url(said.address) + "/manifest", manifest.text)
        return answer.status_code

    with pytest.raises(InputError, match="at most 10"):
        await sent(11, 11)
    assert await sent(40, 1) == 409  # another number than was announced
    assert [await sent(10, 10) for _ in range(5)] == [204, 204, 204, 204, 204]
    used = (await files.client().usage()).used
    assert 50_000 < used < 100_000
    stored = list(files.store.rglob("manifest"))
    assert used == sum(path.stat().st_size - OVERHEAD for path in stored)
    assert [await sent(10, 10) for _ in range(5)].count(413) >= 1
    assert (await files.client().usage()).used <= 100_000
