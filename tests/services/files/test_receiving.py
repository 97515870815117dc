"""A download goes on after each break, as long as bytes arrive."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

from deepgrid.client.files import KeptFiles
from deepgrid.client.files.exchange import FileExchange, file_exchange
from deepgrid.client.settings import ClientSettings
from deepgrid.errors import ServiceError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.files.manifest import FileEntry, Manifest
from tests.sbatch.support import Bench
from tests.services.files.support import FileGrid, grid_job

HASTY = ClientSettings(patience_s=0.5, longest_pause_s=0.05)


class BreakingExchange(FileExchange):
    """Breaks each answer after 2 MiB, later than the client's patience lasts without progress."""

    async def pieces(self, what: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        left = 2 * 1024 * 1024
        async for data in super().pieces(what, start, end):
            yield data
            left -= len(data)
            if left <= 0:
                await asyncio.sleep(2 * HASTY.patience_s)
                raise ServiceError("The connection broke.")


async def test_a_long_download_goes_on_while_bytes_arrive(files: FileGrid, bench: Bench, tmp_path: Path) -> None:
    definition = grid_job('head -c 9000000 /dev/urandom >"$DEEPSQUARE_OUTPUT/large"')
    await files.claimed(definition)
    assert (await files.run(bench, definition)).status == 0
    files.services.chain.put(1, files.services.chain.jobs_by_id[1].definition.definition_hash, JobStatus.FINISHED)
    found = await files.client().of_job(1)
    async with file_exchange(files.client().url(found.address), None) as whole:
        kept = KeptFiles(BreakingExchange(whole._session, whole._url), HASTY)
        (place,) = await kept.fetch(await kept.manifest(), tmp_path / "to", lambda _: True)
    assert place.stat().st_size == 9_000_000


class OneByte:
    """Has the only byte of all files."""

    async def read(self, what: str, most_bytes: int) -> bytes:
        raise NotImplementedError

    async def pieces(self, what: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        yield b"x"


async def test_many_empty_files_in_a_row_are_fetched(tmp_path: Path) -> None:
    """Each empty file was finished by a call in the call before, so 1,000 of them ended in a RecursionError."""
    names = [f"{number:04}" for number in range(1200)]
    sizes = {f"a{name}": 0 for name in names} | {"b": 1} | {f"c{name}": 0 for name in names}
    entries = [FileEntry(name, size, 0o644, hashlib.sha256(b"x" * size).hexdigest()) for name, size in sizes.items()]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)  # as every program has it
    try:
        places = await KeptFiles(OneByte(), HASTY).fetch(Manifest.of(entries), tmp_path, lambda _: True)
    finally:
        sys.setrecursionlimit(limit)
    assert {place.name: place.stat().st_size for place in places} == sizes
