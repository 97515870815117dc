"""Cleanup removes the files of finished claims on the login node, whatever jobs created there, and nothing else."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.states import JobStatus
from deepgrid.provider.cleanup import (
    above_quota,
    find_leftovers,
    find_outputs_above_quota,
    remove_leftovers,
    remove_outputs,
)
from deepgrid.sbatch import StoragePaths
from deepgrid.slurm.submit.folders import Leftover, Output
from tests.provider.claims import in_queue
from tests.provider.scene import Scene
from tests.slurm.support import SMALL, WAIT_FOR_LEAVE, Box, bash, leave
from tests.waiting import until

DAYS = 35
MIB = 1024**2


@pytest.fixture
def storage(approved: Scene, folder: Path) -> Path:
    """The storage root of jobs. Their account may write there."""
    root = folder / f"storage-{approved.session.address[2:10]}"
    approved.session.settings = replace(approved.session.settings, storage=StoragePaths.under(str(root)))
    root.mkdir()
    (root / "shared").mkdir()
    (root / "shared").chmod(0o1777)
    return root / "shared"


def own(box: Box, *paths: Path) -> None:
    """Give the paths to the job's account, as if the job had created them."""
    for path in paths:
        if box.settings.job_account:
            shutil.chown(path, box.settings.job_account, box.settings.job_account)


async def ran(scene: Scene, box: Box, storage: Path) -> tuple[JobKey, Path]:
    """Return a claim whose job runs, with storage as a job creates it."""
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


async def clean_up(scene: Scene, key: JobKey, keep_days: int = DAYS) -> set[Leftover]:
    """Clean up. Returns what was removed of this claim. Jobs of other tests leave files too."""
    removed = await remove_leftovers(scene.session, await find_leftovers(scene.session, keep_days))
    return {one for one in removed if one.key == key}


async def test_storage_is_removed_after_the_claim_and_the_claims_folder_much_later(
    approved: Scene,
    box: Box,
    storage: Path,
) -> None:
    key, mine = await ran(approved, box, storage)
    age(box, key)
    assert await clean_up(approved, key, keep_days=0) == set(), "the job runs"
    earlier = mine.with_name(mine.name.replace(*key.names))  # as a job of an earlier release creates it
    earlier.mkdir()
    own(box, earlier)
    await over(approved, box, key)
    assert await clean_up(approved, key) == {Leftover(key, mine.name), Leftover(key, earlier.name)}
    assert not (mine.exists() or earlier.exists())
    assert mine.parent.exists()
    assert (box.folder(key) / "id").exists()
    assert await clean_up(approved, key) == set(), "an old folder of a claim that ended today"
    assert await clean_up(approved, key, keep_days=0) == {Leftover(key)}
    assert not box.folder(key).exists()
    assert list((Path(box.settings.grid_root) / "removed").iterdir()) == []


async def test_links_are_not_followed_and_missing_rights_keep_nothing(
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
    await clean_up(approved, key, keep_days=0)
    assert (precious / "file").exists()
    assert not mine.exists()
    assert not box.folder(key).exists()


@pytest.mark.parametrize("planted", ["storage", "account"])
async def test_a_link_in_place_of_storage_removes_nothing_of_others(
    approved: Scene,
    box: Box,
    storage: Path,
    folder: Path,
    planted: str,
) -> None:
    """The link replaces a folder between the search and the removal."""
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


async def test_folders_of_other_grids_are_left_alone(
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
        storage / "other",
    ]
    for path in others:
        path.mkdir(parents=True)
        os.utime(path, (1, 1))
    shutil.copy(box.folder(key) / "id", box.folder(elsewhere) / "id")
    os.utime(box.folder(elsewhere), (1, 1))
    await clean_up(approved, key, keep_days=0)
    assert [path for path in others if not path.exists()] == []
    for path in others[:2]:
        shutil.rmtree(path)


def wrote(box: Box, key: JobKey, mib: int) -> Output:
    """Return the output that the claim's job has written, of this size."""
    (box.folder(key) / "output.log").write_bytes(os.urandom(mib * MIB))
    return Output(key, mib * MIB)


async def remove_above_quota(scene: Scene) -> list[JobKey]:
    outputs = await find_outputs_above_quota(scene.session)
    return [one.key for one in await remove_outputs(scene.session, outputs)]


async def test_the_oldest_outputs_above_a_customers_quota_are_removed(approved: Scene, box: Box, storage: Path) -> None:
    approved.session.settings = replace(approved.session.settings, output_quota_bytes=6 * MIB)
    old, undelivered, new, running = [(await ran(approved, box, storage))[0] for _ in range(4)]
    for key in (old, undelivered, new):
        await over(approved, box, key)
        wrote(box, key, 3)
    wrote(box, running, 9)
    assert await remove_above_quota(approved) == [old]
    assert [key for key in (old, undelivered, new, running) if not (box.folder(key) / "output.log").exists()] == [old]
    assert (box.folder(old) / "id").exists(), "the books read the records in it"
    assert await remove_above_quota(approved) == []
    wrote(box, new, 7)
    approved.session.logs.follow(undelivered)
    assert await remove_above_quota(approved) == [new], "the older one is not delivered to its end"
    approved.session.settings = replace(approved.session.settings, output_quota_bytes=0)
    assert await find_outputs_above_quota(approved.session) == [], "no quota"
    await over(approved, box, running)


async def test_an_output_that_a_link_replaces_is_not_followed(
    approved: Scene, box: Box, storage: Path, folder: Path
) -> None:
    approved.session.settings = replace(approved.session.settings, output_quota_bytes=1)
    key, _ = await ran(approved, box, storage)
    await over(approved, box, key)
    wrote(box, key, 2)
    found = await find_outputs_above_quota(approved.session)
    assert key in [one.key for one in found]
    precious = folder / f"precious-output-{key.job_id}"
    precious.write_bytes(bytes(2 * MIB))
    (box.folder(key) / "output.log").unlink()
    (box.folder(key) / "output.log").symlink_to(precious)
    await remove_outputs(approved.session, found)
    assert precious.exists()


def test_outputs_that_fit_into_the_quota_stay() -> None:
    def output(claimed_at: int, size: int) -> Output:
        return Output(JobKey(1, "0x" + "1" * 40, claimed_at, claimed_at), size)

    outputs = [output(3, 30), output(1, 10), output(2, 20)]
    assert above_quota(outputs, 60) == []
    assert above_quota(outputs, 50) == [output(1, 10)]
    assert above_quota(outputs, 49) == [output(1, 10), output(2, 20)]
    assert above_quota(outputs, 0) == [output(1, 10), output(2, 20), output(3, 30)]
