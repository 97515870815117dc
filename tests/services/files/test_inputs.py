"""Inputs that are sent again: a study finds its jobs by them, so they keep their number."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from pathlib import Path

import pytest

from deepgrid.client.files import scan
from deepgrid.errors import InputError, ServiceError
from deepgrid.services.cleanup import Retention, clean_up
from deepgrid.services.files.bundles import Bundles
from deepgrid.services.files.manifest import FileEntry, Manifest
from deepgrid.services.files.parts import OVERHEAD
from tests.services.files.support import FileGrid, filled, put


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
