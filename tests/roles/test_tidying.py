"""What claims leave on the login node goes once they are over, whatever jobs have planted there, and nothing else."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.cleanup import find_leftovers, remove_leftovers
from deepgrid.sbatch import StoragePaths
from deepgrid.slurm.submit.leftovers import Leftover
from tests.roles.claims import in_queue, until
from tests.roles.conftest import Scene
from tests.slurm.support import SMALL, WAIT_FOR_LEAVE, Box, bash, leave

DAYS = 35


@pytest.fixture
def storage(approved: Scene, folder: Path) -> Path:
    """The storage root of jobs, where their account may write."""
    root = folder / f"storage-{approved.session.address[2:10]}"
    approved.session.settings = replace(approved.session.settings, storage=StoragePaths.under(str(root)))
    root.mkdir()
    (root / "shared").mkdir()
    (root / "shared").chmod(0o1777)
    return root / "shared"


def own(box: Box, *paths: Path) -> None:
    """Give what a job would have made to its account."""
    for path in paths:
        if box.settings.job_account:
            shutil.chown(path, box.settings.job_account, box.settings.job_account)


async def ran(scene: Scene, box: Box, storage: Path) -> tuple[JobKey, Path]:
    """A claim whose job runs, with storage as a job makes it."""
    key = await scene.claimed()
    submission = await scene.session.cluster.submit(key, bash(WAIT_FOR_LEAVE), SMALL)
    await until(lambda: in_queue(box, key) == "RUNNING")
    await scene.session.writer.set_running(key.job_id, 1)
    uid = (box.folder(key) / "run").stat().st_uid
    mine = storage / str(uid) / f"{key.name}.{submission.slurm_id}"
    mine.mkdir(parents=True)
    own(box, mine.parent, mine)
    return key, mine


async def over(scene: Scene, box: Box, key: JobKey) -> None:
    leave(box, key)
    await until(lambda: not in_queue(box, key))
    await scene.session.writer.settle(key.job_id, JobStatus.FINISHED, 1, "", 0)


def age(box: Box, key: JobKey) -> None:
    os.utime(box.folder(key), (1, 1))


async def tidy(scene: Scene, key: JobKey, keep_days: int = DAYS) -> set[Leftover]:
    """What was removed of this claim; jobs of other tests leave something too."""
    removed = await remove_leftovers(scene.session, await find_leftovers(scene.session, keep_days))
    return {one for one in removed if one.key == key}


async def test_storage_goes_when_the_claim_is_over_and_the_claims_folder_much_later(
    approved: Scene,
    box: Box,
    storage: Path,
) -> None:
    key, mine = await ran(approved, box, storage)
    age(box, key)
    assert await tidy(approved, key, keep_days=0) == set(), "it runs"
    await over(approved, box, key)
    assert await tidy(approved, key) == {Leftover(key, mine.name)}
    assert not mine.exists()
    assert mine.parent.exists()
    assert (box.folder(key) / "id").exists()
    assert await tidy(approved, key) == set(), "an old folder of a claim that ended today"
    assert await tidy(approved, key, keep_days=0) == {Leftover(key)}
    assert not box.folder(key).exists()
    assert list((Path(box.settings.grid_root) / "removed").iterdir()) == []


async def test_links_lead_nowhere_and_rights_that_were_taken_away_keep_nothing(
    approved: Scene,
    box: Box,
    storage: Path,
    folder: Path,
) -> None:
    key, mine = await ran(approved, box, storage)
    precious = folder / f"precious-{key.job_id}"
    precious.mkdir()
    (precious / "file").touch()
    run = box.folder(key) / "run"
    locked = mine / "locked"
    locked.mkdir()
    for place in (mine, locked, run):
        (place / "link").symlink_to(precious)
        (place / "link-to-a-file").symlink_to(precious / "file")
    own(box, locked)
    locked.chmod(0)
    await over(approved, box, key)
    age(box, key)
    await tidy(approved, key, keep_days=0)
    assert (precious / "file").exists()
    assert not mine.exists()
    assert not box.folder(key).exists()


@pytest.mark.parametrize("planted", ["storage", "account"])
async def test_a_link_in_the_place_of_storage_is_no_way_to_what_others_have(
    approved: Scene,
    box: Box,
    storage: Path,
    folder: Path,
    planted: str,
) -> None:
    """Planted between the look and the removal, when the look has seen a folder there."""
    key, mine = await ran(approved, box, storage)
    await over(approved, box, key)
    found = await find_leftovers(approved.session, DAYS)
    assert found == [Leftover(key, mine.name)]
    precious = folder / f"precious-{planted}-{key.job_id}"
    (precious / mine.name).mkdir(parents=True)
    (precious / mine.name / "file").touch()
    mine.rmdir()
    if planted == "storage":
        mine.symlink_to(precious / mine.name)
    else:
        mine.parent.rmdir()
        mine.parent.symlink_to(precious)
    await remove_leftovers(approved.session, found)
    if planted == "storage" or box.settings.job_account:
        assert (precious / mine.name / "file").exists(), "the account of the job may not write there"


async def test_what_is_not_this_grids_is_left_alone(
    approved: Scene,
    box: Box,
    storage: Path,
) -> None:
    key, mine = await ran(approved, box, storage)
    await over(approved, box, key)
    elsewhere = replace(key, chain_id=key.chain_id + 1)
    others: list[Path] = [
        box.folder(elsewhere),
        box.folder(replace(key, job_id=10**6)),
        mine.with_name(f"{key.name}.999999"),
        mine.with_name("0x1.1"),
        storage / "4242" / mine.name,
        storage / "somebody",
    ]
    for path in others:
        path.mkdir(parents=True)
        os.utime(path, (1, 1))
    shutil.copy(box.folder(key) / "id", box.folder(elsewhere) / "id")
    os.utime(box.folder(elsewhere), (1, 1))
    await tidy(approved, key, keep_days=0)
    assert [path for path in others if not path.exists()] == []
    for path in others[:2]:
        shutil.rmtree(path)
