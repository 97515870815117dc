"""A download continues after each break, as long as bytes arrive."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deepgrid.client.errors import NoOutput
from deepgrid.client.files import KeptFiles, scan, send
from deepgrid.client.files.exchange import FileExchange, file_exchange
from deepgrid.client.job_output import JobFiles
from deepgrid.client.settings import ClientSettings
from deepgrid.errors import NotFound, ServiceError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.sbatch.file_addresses import PART_BYTES
from deepgrid.services.files.manifest import FileEntry, Manifest
from tests.sbatch.support import Bench
from tests.services.files.support import IMPATIENT, FileGrid, filled, grid_job

HASTY = ClientSettings(patience_s=0.5, longest_pause_s=0.05)
MIB = 1024 * 1024
LARGE = Manifest.of([FileEntry("large", 3 * MIB, 0o644, hashlib.sha256(bytes(3 * MIB)).hexdigest())])


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


class EndingExchange(OneByte):
    """Has a file of 3 MiB, and answers after each MiB that the address is no longer good."""

    async def read(self, what: str, most_bytes: int) -> bytes:
        return LARGE.text

    async def pieces(self, what: str, start: int, end: int) -> AsyncGenerator[bytes, None]:
        yield bytes(min(MIB, end - start))
        if end - start > MIB:
            raise NotFound("this address of files is wrong, or no longer good")


class KeptJob(JobFiles):
    """A job whose files can be read `addresses` times."""

    def __init__(self, addresses: int) -> None:
        self._connection: Any = SimpleNamespace(outputs={}, has_key=True)
        self._job: Any = SimpleNamespace(id=1)
        self._left = addresses

    @asynccontextmanager
    async def _open_kept_files(self) -> AsyncIterator[KeptFiles]:
        if not self._left:
            raise NotFound("the grid has no files of job 1")
        self._left -= 1
        yield KeptFiles(EndingExchange(), HASTY)


async def test_a_download_goes_on_with_another_address(tmp_path: Path) -> None:
    """An address ends after a day. Then a download said that the job had left nothing."""
    assert await KeptJob(3)._fetch_kept(tmp_path / "whole", None) == [tmp_path / "whole" / "large"]
    with pytest.raises(NoOutput, match="the grid has no files of job 1"):  # they were deleted meanwhile
        await KeptJob(2)._fetch_kept(tmp_path / "cut", None)
    assert await KeptJob(0)._fetch_kept(tmp_path / "none", None) is None


async def test_an_upload_goes_on_with_another_address(
    files: FileGrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address of an upload ends after a day, and the advice used to be to check the number of the job."""
    sent = filled(tmp_path / "laptop", {"large": bytes(6 * PART_BYTES)})
    client, announced = files.client(), 0
    announce = client.announce

    async def now(*values: Any) -> Any:
        nonlocal announced
        announced += 1
        files.services.clock.ahead_s = 0  # signed requests need the time of now
        return await announce(*values)

    def tell(done: int, size: int) -> None:
        files.services.clock.ahead_s = 25 * 3600 if announced == 1 else 0

    monkeypatch.setattr(client, "announce", now)
    number = await send(client, [sent / "large"], None, IMPATIENT, tell)
    assert announced == 2
    assert (await client.announce(scan([sent / "large"]).manifest.digest, 6 * PART_BYTES, 1)).id == number
