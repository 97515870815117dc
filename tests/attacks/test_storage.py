"""A job's account takes the names of other jobs' storage folders, or forges storage that the supervisor removes."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from pwd import getpwnam

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.sbatch import StoragePaths, render
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.submit.folders import Leftover
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deepgrid.workflow import parse
from tests.attacks.cleaning import CUSTOMER, JOB, OF_CUSTOMER
from tests.attacks.intruder import intruder
from tests.slurm.support import SMALL, Box, ended, new_key

LOGGED = "enableLogging: true\nresources: {tasks: 1, cpusPerTask: 1, memPerCpu: 100, gpus: 0}\n"
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="accounts are made by root")


def as_nobody(script: str) -> None:
    subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-ec", script], check=True)


TAKEN = ["mkdir -m 777", "mkdir -m 000", "touch", "ln -s /etc", "ln -s /proc/1/root", "mkfifo"]
SHOWS = """for folder in "$STORAGE_PATH" "$DEEPSQUARE_TMP" "$DEEPSQUARE_DISK_TMP"; do
        echo kept >"$folder/file"; stat -c '%U %a' "$folder"; done"""


@pytest.mark.attack(
    "creates the storage folders of another customer's account first, as its own folders, links or files",
    attacker="a job's account", gain="the other customer's jobs do not find files of earlier jobs",
    defence="a job never uses a folder of another account; it creates one with an unpredictable name",
)  # fmt: skip
@pytest.mark.parametrize("taking", TAKEN)
async def test_a_taken_storage_folder_is_not_used(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey, storage: StoragePaths, taking: str
) -> None:
    uid = getpwnam(box.settings.job_account or "").pw_uid
    places = [f"{storage.job}/{uid}", f"{storage.user_tmp}/user-{uid}", f"{storage.disk_tmp}/user-{uid}"]
    for place in places:
        as_nobody(f"{taking} {place}")
    made = parse(f"{LOGGED}steps:\n  - run:\n      command: |\n        {SHOWS}\n", "job").model
    await cluster.submit(key, render(made, storage), SMALL)
    state = await ended(monitor, key)
    output = (box.folder(key) / "output.log").read_text()
    assert state.exit_status == 0, output
    assert output.splitlines() == [f"{box.settings.job_account} 700"] * 3
    for place in places:
        assert [path.name for path in Path(place).parent.iterdir()] == [Path(place).name], "the job's files are gone"


@pytest.mark.attack(
    "creates these folders first, and the other customer's job is killed",
    attacker="a job's account", gain="nothing",
    defence="storage with an unpredictable name is found too, and removed with the rights of its account",
)  # fmt: skip
async def test_storage_beside_a_taken_folder_is_removed_after_a_kill(
    cluster: Cluster, key: JobKey, storage: StoragePaths
) -> None:
    async with intruder(cluster, key) as job:
        uid = job.run.stat().st_uid
        as_nobody(f"mkdir -m 777 {storage.job}/{uid}")
        slurm_id = (job.folder / "id").read_text().split()[0]
        mine = Path(f"{storage.job}/{uid}.aB3dE6gH9j/{key.name}.{slurm_id}")
        assert job.does(f"mkdir -p {mine}; chmod 700 {mine.parent}; mkdir {mine}/locked; chmod 0 {mine}/locked")
    found = [one for one in await cluster.leftovers.find(key, storage.job, keep_days=99) if one.key == key]
    assert found == [Leftover(key, mine.name)]
    assert await cluster.leftovers.remove(key, storage.job, found) == found
    assert not mine.parent.exists()


FOLLOWED = "mkdir -m 755 $N; ln -s $P $N/$S; ln -s $N {}"
BAD_ENTRIES = {
    "link to a folder with a link": FOLLOWED.format("$T"),
    "folder with a link": "mkdir -m 755 $T; ln -s $P $T/$S",
    "folder with a FIFO": "mkdir -m 755 $T; mkfifo $T/$S",
    "closed folder": "mkdir -m 755 -p $T/$S; chmod 000 $T",
    "link to nowhere": "ln -s /nowhere/at/all $T",
    "link to itself": "ln -s $T $T",
    "FIFO": "mkfifo $T",
    "file": "touch $T",
}


@pytest.mark.attack(
    "puts links, FIFOs, files or closed folders next to the storage of another customer's killed job, under names that"
    " the supervisor searches",
    attacker=JOB, gain="nothing",
    defence="only folders of the job's own account are searched; the provider's log names the taken folder",
)  # fmt: skip
@pytest.mark.parametrize("bad", BAD_ENTRIES)
async def test_storage_behind_bad_entries_is_removed(
    either: Cluster, key: JobKey, storage: StoragePaths, precious: Path, bad: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with intruder(either, key, OF_CUSTOMER) as job:
        uid = job.run.stat().st_uid
        name = f"{key.name}.{(job.folder / 'id').read_text().split()[0]}"
        mine = Path(f"{storage.job}/{uid}.zzzzzzzzzz/{name}")
        assert job.does(f"mkdir -p {mine}; chmod 700 {mine.parent}; touch {mine}/file")
    for place in (f"{storage.job}/{uid}", f"{storage.job}/{uid}.aaaaaaaaaa"):
        as_nobody(f"T={place} N={place}.elsewhere S={name} P={precious}; {BAD_ENTRIES[bad]}")
    assert await either.leftovers.remove(key, storage.job, [Leftover(key, name)]) == [Leftover(key, name)]
    assert not mine.parent.exists()
    assert (precious / "file").read_text() == "kept"
    await either.leftovers.find(key, storage.job, keep_days=99)
    assert f"clean-up skipped storage {uid}: its name is taken by another account" in caplog.messages


GRABS = [
    "mkdir {}",
    "ln -sfn /etc {}",
    "rmdir {} && mkdir {}",
    "mv {} {}.old && mkdir {}",
    "chmod 777 {}",
    "touch {}/file",
]


@pytest.mark.attack(
    "takes the names of another account's storage folders after that account's first job",
    attacker=JOB, gain="nothing",
    defence="the supervisor makes the folders before the first job, as root or by sudo; the roots are sticky",
)  # fmt: skip
@pytest.mark.parametrize("grab", GRABS)
async def test_storage_folders_are_made_for_their_account(either: Cluster, storage: StoragePaths, grab: str) -> None:
    uids = {getpwnam(name).pw_uid for name in either.settings.accounts.table.values()}
    assert len(uids) == 2, "also for an account that has no job yet"
    await either.make_storage(new_key(), CUSTOMER, storage.of_account)
    for place in (f"{beginning}{uid}" for beginning in storage.of_account for uid in uids):
        with pytest.raises(subprocess.CalledProcessError):
            as_nobody(grab.replace("{}", place))
        made = Path(place).lstat()
        assert (stat.S_IFMT(made.st_mode), stat.S_IMODE(made.st_mode)) == (stat.S_IFDIR, 0o700)
        assert made.st_uid in uids


@pytest.mark.parametrize("taking", TAKEN)
async def test_a_storage_folder_that_is_taken_is_told_and_left_alone(
    either: Cluster, storage: StoragePaths, taking: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = either.settings.account_of(CUSTOMER)
    taken = Path(f"{storage.job}/{getpwnam(name).pw_uid}")
    as_nobody(f"{taking} {taken}")
    before = taken.lstat()
    await either.make_storage(new_key(), CUSTOMER, (*storage.of_account, "/nowhere/at/all/"))
    assert caplog.messages == [f"storage folder is taken by another account: {name} {taken}"]
    after = taken.lstat()
    assert (before.st_mode, before.st_uid, before.st_ino) == (after.st_mode, after.st_uid, after.st_ino)


@pytest.mark.attack(
    "names folders in the storage root like the storage of other claims, with line ends and other user ids",
    attacker=JOB, gain="nothing",
    defence="only the storage of recorded claims with the user id of their account is removed",
)  # fmt: skip
async def test_forged_storage_of_other_claims_is_not_removed(
    cluster: Cluster, key: JobKey, storage: StoragePaths, precious: Path
) -> None:
    async with intruder(cluster, key) as job:
        uid = job.run.stat().st_uid
        slurm_id = (job.folder / "id").read_text().split()[0]
        name = f"{key.name}.{slurm_id}"
        forged = [f"0/{name}", f"1/{name}", f"{uid}.x/{name}", f"{uid}/{name}9", f"{uid}/x\n{uid} {name}"]
        for one in forged:
            assert job.does(f"mkdir -p '{storage.job}/{one}'")
        assert job.does(f"ln -s {precious} {storage.job}/{uid}/{name}")
    found = [one for one in await cluster.leftovers.find(key, storage.job, keep_days=99) if one.key == key]
    assert found == []
    planted = [Leftover(key, name)]
    assert await cluster.leftovers.remove(key, storage.job, planted) == []
    assert (precious / "file").read_text() == "kept"
