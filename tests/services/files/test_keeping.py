"""Files are kept as long as the operator's terms say, and come back on a new machine after the first one was lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from sqlalchemy import func, select

from deepgrid.errors import InputError, NotFound, ServiceError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.sbatch.file_addresses import PART_BYTES
from deepgrid.services.cleanup import Retention, clean_up
from deepgrid.services.files.manifest import FileEntry, Manifest
from deepgrid.services.signing.request_signing import WINDOW_S
from deepgrid.services.storage.database import Definition
from tests.sbatch.support import Bench
from tests.services.backup_support import Machine
from tests.services.files.support import FileGrid, content_of, filled, get, grid_job, put
from tests.services.support import ACCOUNTS, Start, starting

DAY_S = 24 * 3600
EMPTY_FILE = b"0 644 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  empty\0"
OUTPUT = grid_job('echo "$RANDOM" >"$DEEPSQUARE_OUTPUT/result"')


async def with_output(grid: FileGrid, bench: Bench, job_id: int) -> None:
    await grid.claimed(OUTPUT, job_id)
    assert (await grid.run(bench, OUTPUT, job_id)).status == 0
    definition_hash = grid.services.chain.jobs_by_id[job_id].definition.definition_hash
    grid.services.chain.put(job_id, definition_hash, JobStatus.FINISHED)


async def round_of(grid: FileGrid, days: float) -> None:
    """Clean up as in some days. Requests are signed now, so the clock goes back."""
    grid.services.clock.ahead_s = days * DAY_S
    await clean_up(grid.services.context, Retention())
    grid.services.clock.ahead_s = 0


async def test_retention_deletes_what_is_over_and_nothing_else(files: FileGrid, bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "terms.json").write_text(
        json.dumps({"keep_days": 3, "customers": {ACCOUNTS["rival"].address: {"keep_days": 9}}})
    )
    assert files.services.context.files is not None
    files.services.context.files.policy._path = tmp_path / "terms.json"
    unused = filled(tmp_path / "laptop", ["unused", "waiting"])
    await files.send(unused / "unused")
    await files.send(unused / "unused", name="rival")
    waiting = await files.send(unused / "waiting")
    await files.claimed(grid_job(":", {"grid": {"files": waiting}}, output=False), 2, status=JobStatus.PENDING)
    await with_output(files, bench, 1)
    await round_of(files, 2.9)
    assert await files.names() == ["result"]

    def stored() -> int:
        return len({path.parent for path in files.store.rglob("*") if path.is_file()})

    assert stored() == 4
    await round_of(files, 3.1)
    with pytest.raises(NotFound):
        await files.names()
    assert stored() == 2  # the input of the job that waits, and the rival's
    assert await files.content_bytes() == len("waiting")
    assert await files.content_bytes("rival") == len("unused")
    await round_of(files, 9.1)
    assert (stored(), (await files.client("rival").usage()).used) == (1, 0)
    files.services.chain.put(2, files.services.chain.jobs_by_id[2].definition.definition_hash, JobStatus.CANCELLED)
    for days in (10, 14, 15):  # the end is seen, the definition goes, and then its input
        await round_of(files, days)
    assert (stored(), (await files.client().usage()).used) == (0, 0)


async def test_a_job_that_runs_longer_than_files_are_kept_leaves_its_output(files: FileGrid) -> None:
    """The clean-up deleted the place of its output after 30 days, and the address ended after 60."""
    await files.claimed(grid_job(":"))
    address = (await files.addresses()).output
    for days in (31, 365):
        files.services.clock.ahead_s = days * DAY_S
        await clean_up(files.services.context, Retention())
        assert (await put(address + "/manifest", EMPTY_FILE)).status_code == 204
        assert (await put(address + "/finish", b"")).status_code == 204
    files.services.clock.ahead_s = 0
    assert await files.names() == ["empty"]


async def test_an_output_stays_for_the_job_that_waits_for_it(files: FileGrid, bench: Bench) -> None:
    await with_output(files, bench, 1)
    await files.claimed(grid_job(":", {"job": 1}, output=False), 2, status=JobStatus.PENDING)
    await round_of(files, 31)
    files.services.chain.put(2, files.services.chain.jobs_by_id[2].definition.definition_hash)
    assert (await files.client("provider").transfers(2)).input
    files.services.chain.put(2, files.services.chain.jobs_by_id[2].definition.definition_hash, JobStatus.CANCELLED)
    for days in (62, 63, 64):
        await round_of(files, days)
    with pytest.raises(NotFound):
        await files.names()


async def test_old_inputs_make_room_at_the_quota(files: FileGrid, tmp_path: Path) -> None:
    """Three versions of a folder did not fit, and nothing but 30 days made room."""
    (tmp_path / "terms.json").write_text(json.dumps({"quota_gib": 2500 / 1024**3}))
    assert files.services.context.files is not None
    files.services.context.files.policy._path = tmp_path / "terms.json"
    sent = filled(tmp_path / "laptop", {name: name.encode() * 1000 for name in "abcd"})
    first = await files.send(sent / "a")
    await files.claimed(grid_job(":", {"grid": {"files": first}}, output=False), 1, status=JobStatus.PENDING)
    await files.send(sent / "b")
    with pytest.raises(InputError, match="wait for the jobs that have your files as their input"):
        await files.send(sent / "c")  # the second one may be in transit to a job
    files.services.clock.ahead_s = 700
    assert await files.send(sent / "a") == first  # it is there, and costs nothing
    assert await files.content_bytes() == 2000
    third = await files.send(sent / "c")
    assert await files.content_bytes() == 2000
    files.services.clock.ahead_s = 1400
    output = grid_job(":")
    await files.claimed(output, 2)
    address = (await files.addresses(2)).output
    assert (await put(address + "/manifest", EMPTY_FILE.replace(b"0 ", b"1000 ", 1))).status_code == 204
    with pytest.raises(InputError, match="or they were deleted; send them"):
        await files.services.customer.upload(grid_job(":", {"grid": {"files": third}}))
    files.services.chain.put(1, files.services.chain.jobs_by_id[1].definition.definition_hash)
    assert (await files.client("provider").transfers(1)).input


async def test_files_come_back_on_a_new_machine(start: Start, bench: Bench, tmp_path: Path) -> None:
    """The folder is copied after the database, as the guide says. Files of the time between are the difference."""
    lost, new, archive = Machine.at(tmp_path), Machine.at(tmp_path / "new"), tmp_path / "backup.tar"
    old = FileGrid(await start(files=str(tmp_path / "files")), tmp_path / "files")
    for job_id in (1, 2):
        await with_output(old, bench, job_id)
    await old.download(tmp_path / "before")
    file = await old.services.customer.kept_file(1)
    revoked, good = [(await old.client().share(job_id, DAY_S)).address or "" for job_id in (1, 2)]
    await old.client().revoke_links(1)
    await lost.back_up(archive)
    await with_output(old, bench, 3)
    await old.client().delete(2)
    shutil.copytree(tmp_path / "files", tmp_path / "new/files")

    await new.restore(archive)
    async with starting(tmp_path / "new") as start_new:
        grid = FileGrid(await start_new(old.services.chain, files=str(tmp_path / "new/files")), tmp_path / "new/files")
        grid.services.clock.ahead_s = 2 * WINDOW_S
        await grid.download(tmp_path / "after")
        assert content_of(tmp_path / "after") == content_of(tmp_path / "before") != {}
        assert await grid.services.customer.kept_file(1) == file
        client = grid.client()
        assert (await get(client.url(revoked) + "/data")).status_code == 404
        with pytest.raises(ServiceError):  # it was deleted after the backup of the database
            await grid.download(tmp_path / "gone", 2)
        with pytest.raises(NotFound):  # it came after it
            await grid.download(tmp_path / "later", 3)
        await client.delete(2)
        assert await grid.content_bytes() == sum(map(len, content_of(tmp_path / "after").values()))
        assert (await get(client.url(good) + "/data")).status_code == 404
        await with_output(grid, bench, 4)
        assert await grid.names(4) == ["result"]


async def test_files_that_cannot_be_deleted_keep_nothing_else(
    files: FileGrid, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them ended each round of the clean-up before it came to the others, and to definitions."""
    sent = filled(tmp_path / "laptop", {name: name.encode() * 1000 for name in "abc"})
    numbers = sorted([await files.send(sent / name) for name in "abc"])
    await files.services.customer.upload(grid_job(":"))
    room = files.services.context.files
    assert room is not None
    forget, broken = room.parts.forget, {(await room.require(numbers[0])).folder}

    async def failing(bundle: str, keep: str = "") -> None:
        if bundle in broken:
            raise ServiceError("The store of files does not answer.")
        await forget(bundle, keep)

    monkeypatch.setattr(room.parts, "forget", failing)
    await round_of(files, 31)
    assert await files.content_bytes() == 1000
    async with files.services.context.database.read() as session:
        assert await session.scalar(select(func.count()).select_from(Definition)) == 0
    broken.clear()
    await round_of(files, 0)  # begun deletions are completed
    assert (await files.client().usage()).used == 0


async def test_a_job_begins_although_the_output_of_its_earlier_claim_stays(
    files: FileGrid, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_output(files, bench, 1)
    room = files.services.context.files
    assert room is not None

    async def failing(bundle: str, keep: str = "") -> None:
        raise ServiceError("The store of files does not answer.")

    monkeypatch.setattr(room.parts, "forget", failing)
    files.services.chain.put(1, files.services.chain.jobs_by_id[1].definition.definition_hash, claimed_at=2 * 10**9)
    assert (await files.client("provider").transfers(1)).output


async def test_an_abandoned_upload_makes_room(files: FileGrid, tmp_path: Path) -> None:
    """It took the quota for a day, and nothing that the refusal advised made room."""
    (tmp_path / "terms.json").write_text(json.dumps({"quota_gib": 2 * PART_BYTES / 1024**3}))
    assert files.services.context.files is not None
    files.services.context.files.policy._path = tmp_path / "terms.json"
    abandoned = Manifest.of([FileEntry("x", PART_BYTES + 9, 0o644, "a" * 64)])
    client = files.client()
    address = client.url((await client.announce(abandoned.digest, abandoned.size, 1)).address)
    assert (await put(address + "/manifest", abandoned.text)).status_code == 204
    sent = filled(tmp_path / "laptop", {"a": b"a" * PART_BYTES})
    files.services.clock.ahead_s = 500
    assert (await put(address + "/parts/1", bytes(9))).status_code == 204
    files.services.clock.ahead_s = 1000  # the last part came less than 10 minutes ago
    with pytest.raises(InputError, match="after an upload that was not completed, 10 minutes"):
        await files.send(sent / "a")
    files.services.clock.ahead_s = 1200
    await files.send(sent / "a")
    assert await files.content_bytes() == PART_BYTES
    assert (await put(address + "/parts/0", bytes(PART_BYTES))).status_code == 404
