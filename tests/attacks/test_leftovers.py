"""A job's account creates files where the supervisor cleans up and where jobs of other customers make folders."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from pwd import getpwnam

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.sbatch import StoragePaths, render
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.accounts import CustomerAccounts
from deepgrid.slurm.ssh.login import Login, LoginSettings
from deepgrid.slurm.submit.leftovers import Leftover
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deepgrid.workflow import parse
from tests.attacks.intruder import Intruder, intruder
from tests.slurm.ordinary import ordinary_supervisor
from tests.slurm.people import account
from tests.slurm.support import SMALL, Box, ended

CUSTOMER = "0x" + "a" * 40
OF_CUSTOMER = replace(SMALL, customer=CUSTOMER)
JOB = "a job's account"
LOGGED = "enableLogging: true\nresources: {tasks: 1, cpusPerTask: 1, memPerCpu: 100, gpus: 0}\n"
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="accounts are made by root")


@pytest.fixture(scope="module")
def by_sudo(box: Box, state_folder: Path) -> Iterator[LoginSettings]:
    """A supervisor without root that becomes its customers' accounts by sudo."""
    folder = Path(tempfile.mkdtemp(dir=state_folder))
    folder.chmod(0o755)
    with account() as name, ordinary_supervisor(box, folder, CustomerAccounts({CUSTOMER: name})) as settings:
        yield settings


@pytest.fixture(params=["root", "sudo"])
async def either(request: pytest.FixtureRequest, box: Box) -> AsyncIterator[Cluster]:
    """The cluster of a supervisor that runs as root, or of one that becomes its customers by sudo."""
    settings = request.getfixturevalue("by_sudo") if request.param == "sudo" else box.settings
    removed = Path(settings.grid_root) / "removed"  # the other supervisor may have created it
    removed.mkdir(mode=0o700, exist_ok=True)
    shutil.chown(removed, settings.user)
    login = Login(settings)
    yield Cluster(login, settings)
    await login.close()


@pytest.fixture
def storage(state_folder: Path) -> StoragePaths:
    """Storage roots in which every account may create folders."""
    paths = StoragePaths.under(tempfile.mkdtemp(dir=state_folder))
    Path(paths.job).parent.chmod(0o755)
    for root in paths.roots:
        Path(root).mkdir()
        Path(root).chmod(0o1777)
    return paths


@pytest.fixture
def precious(state_folder: Path) -> Path:
    """A folder of the provider with a file."""
    folder = Path(tempfile.mkdtemp(dir=state_folder, prefix="precious-"))
    (folder / "file").write_text("kept")
    return folder


PLANTED = """
ln -s $P link; ln -s $P/file file; mkfifo fifo; mkdir -p a/b; ln -s $P a/b/c; touch -- 'new
line' ' ' -rf '*' ; i=0
while [ $i -lt 200 ]; do mkdir deep; cd deep; i=$((i + 1)); done; cd $F/run; chmod 0 a/b; chmod 0 a
"""


def removed_folders(cluster: Cluster) -> list[Path]:
    return list((Path(cluster.settings.grid_root) / "removed").iterdir())


@pytest.mark.attack(
    "leaves links, FIFOs, locked or deep folders and odd names where it ran, which the supervisor must remove",
    attacker=JOB, gain="nothing",
    defence="links are not followed; without root, files are removed with the account's own rights",
)  # fmt: skip
async def test_files_left_where_a_job_ran_are_removed_safely(either: Cluster, key: JobKey, precious: Path) -> None:
    async with intruder(either, key, OF_CUSTOMER) as job:
        assert job.does(PLANTED.replace("$P", str(precious)))
    nowhere = "/nowhere/at/all"
    assert await either.leftovers.remove(key, nowhere, [Leftover(key)]) == [Leftover(key)]
    assert not job.folder.exists()
    assert removed_folders(either) == []
    assert (precious / "file").read_text() == "kept"


@contextmanager
def writing(job: Intruder) -> Iterator[None]:
    """A process of the account keeps creating files where the job ran."""
    script = "cd $F/run; while :; do i=$((i + 1)); : >f$i; done 2>/dev/null"
    own = job.run.stat()
    become = ["setpriv", f"--reuid={own.st_uid}", f"--regid={own.st_gid}", "--clear-groups"]
    process = subprocess.Popen([*become, "sh", "-c", script], env={"PATH": os.defpath, "F": str(job.folder)})
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.attack(
    "keeps creating files where it ran while the supervisor removes them",
    attacker="a job's account", gain="files until its process ends",
    defence="the folder is first moved out of its reach; the next call removes what is left",
)  # fmt: skip
async def test_files_that_come_back_are_removed_in_the_end(either: Cluster, key: JobKey) -> None:
    async with intruder(either, key, OF_CUSTOMER) as job:
        pass
    with writing(job):
        await either.leftovers.remove(key, "/nowhere/at/all", [Leftover(key)])
        assert not job.folder.exists()
    await either.leftovers.remove(key, "/nowhere/at/all", [])
    assert removed_folders(either) == []


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
        assert [path.name for path in Path(place).parent.iterdir()] == [Path(place).name], "what the job made is gone"


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
