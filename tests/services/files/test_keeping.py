"""Files are kept as long as the operator's terms say, and come back on a new machine after the first one was lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from deepgrid.errors import NotFound, ServiceError
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.cleanup import Retention, clean_up
from deepgrid.services.signing.request_signing import WINDOW_S
from tests.sbatch.support import Bench
from tests.services.backup_support import Machine
from tests.services.files.support import FileGrid, content_of, filled, get, grid_job
from tests.services.support import ACCOUNTS, Start, starting

DAY_S = 24 * 3600
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
    assert (await files.client().usage()).used == len("waiting")
    assert (await files.client("rival").usage()).used == len("unused")
    await round_of(files, 9.1)
    assert (stored(), (await files.client("rival").usage()).used) == (1, 0)
    files.services.chain.put(2, files.services.chain.jobs_by_id[2].definition.definition_hash, JobStatus.CANCELLED)
    for days in (10, 14, 15):  # the end is seen, the definition goes, and then its input
        await round_of(files, days)
    assert (stored(), (await files.client().usage()).used) == (0, 0)


async def test_files_come_back_on_a_new_machine(start: Start, bench: Bench, tmp_path: Path) -> None:
    """The folder is copied after the database, as the guide says. Files of the time between are the difference."""
    lost, new, archive = Machine.at(tmp_path), Machine.at(tmp_path / "new"), tmp_path / "backup.tar"
    old = FileGrid(await start(files=str(tmp_path / "files")), tmp_path / "files")
    for job_id in (1, 2):
        await with_output(old, bench, job_id)
    await old.download(tmp_path / "before")
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
        client = grid.client()
        assert (await get(client.url(revoked) + "/data")).status_code == 404
        with pytest.raises(ServiceError):  # it was deleted after the backup of the database
            await grid.download(tmp_path / "gone", 2)
        with pytest.raises(NotFound):  # it came after it
            await grid.download(tmp_path / "later", 3)
        await client.delete(2)
        assert (await client.usage()).used == sum(map(len, content_of(tmp_path / "after").values()))
        assert (await get(client.url(good) + "/data")).status_code == 404
        await with_output(grid, bench, 4)
        assert await grid.names(4) == ["result"]
