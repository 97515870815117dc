"""A job's account creates files where the supervisor cleans up, or hinders the processes that do."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from pwd import getpwuid

import pytest

from deepgrid.lifecycle.job import JobKey
from deepgrid.sbatch import StoragePaths
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.submit.folders import Leftover
from deepgrid.slurm.submit.protocol import SubmitRequest
from tests.attacks.cleaning import JOB, OF_CUSTOMER, OF_OTHER
from tests.attacks.intruder import Intruder, intruder
from tests.slurm.support import new_key

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="accounts are made by root")


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
    """Let a process of the account keep creating files where the job ran."""
    script = "cd $F/run; while :; do i=$((i + 1)); : >f$i; done 2>/dev/null"
    account = getpwuid(job.run.stat().st_uid)
    become = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
    process = subprocess.Popen([*become, "sh", "-c", script], env={"PATH": os.defpath, "F": str(job.folder)})
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.attack(
    "keeps creating files where it ran while the supervisor removes them",
    attacker=JOB, gain="files until its process ends",
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


# Stops each process of its account that cleans up, or keeps its output open. Prints the id of each.
LOOP = """
import os, signal, sys, time
print("up", flush=True)
stopped = set()
while True:
    time.sleep(0.01)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if pid in stopped or os.stat(f"/proc/{pid}").st_uid != os.getuid():
                continue
            with open(f"/proc/{pid}/comm") as file:
                if file.read().strip() not in ("sh", "find", "rm", "chmod", "timeout", "setpriv"):
                    continue
            if sys.argv[1] == "stop":
                os.kill(int(pid), signal.SIGSTOP)
            elif (output := f"/proc/{pid}/fd/1") and "pipe" in os.readlink(output):
                os.open(output, os.O_WRONLY)
        except OSError:
            continue
        stopped.add(pid)
        print(pid, flush=True)
"""


@contextmanager
def disturbing(job: Intruder, manner: str) -> Iterator[list[str]]:
    """Let a process of the account disturb every process that cleans up. The list has their ids at the end."""
    account = getpwuid(job.run.stat().st_uid)
    become = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
    process = subprocess.Popen([*become, "/usr/bin/python3", "-c", LOOP, manner], stdout=subprocess.PIPE, text=True)
    assert process.stdout and process.stdout.readline() == "up\n"
    stopped: list[str] = []
    try:
        yield stopped
    finally:
        process.kill()
        stopped += process.communicate()[0].split()
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


async def left_behind(
    cluster: Cluster, request: SubmitRequest, storage: StoragePaths, files: int
) -> tuple[Intruder, list[Leftover]]:
    """Return a job that ended without removing its files, and its leftovers: the storage and the claim."""
    key = new_key()
    async with intruder(cluster, key, request) as job:
        name = f"{key.name}.{(job.folder / 'id').read_text().split()[0]}"
        mine = f"{storage.job}/{job.run.stat().st_uid}/{name}"
        assert job.does(f"mkdir -p {mine}; cd {mine}; seq {files} | xargs touch; cp -r . $F/run/files")
    return job, [Leftover(key, name), Leftover(key)]


@pytest.mark.long  # waits for the time that the stopped processes may use
@pytest.mark.attack(
    "stops the processes that clean up with its account's rights (SIGSTOP), so that they never end",
    attacker=JOB, gain="its own files stay; others' files are removed by the same call",
    defence="the supervisor's own uid limits the time of each account; after that the account waits for the next round",
)  # fmt: skip
async def test_a_stopped_cleaner_delays_no_other_account(either: Cluster, storage: StoragePaths) -> None:
    stopper, its = await left_behind(either, OF_CUSTOMER, storage, files=8000)
    attacker = its[0].key
    others = [one for _ in range(2) for one in (await left_behind(either, OF_OTHER, storage, files=100))[1]]
    wanted = [*its, *others]
    with disturbing(stopper, "stop") as stopped:
        removed = await either.leftovers.remove(attacker, storage.job, wanted)
    assert stopped
    assert {one for one in removed if one.key != attacker} == set(others)
    await either.leftovers.remove(attacker, storage.job, wanted)  # now that the account stops no process
    assert removed_folders(either) == []
    assert list(Path(storage.job).glob("*/*")) == []


@pytest.mark.long  # waits for the time that the account may use
@pytest.mark.attack(
    "keeps the output of cleaning processes open, so that each step takes its whole time", attacker=JOB,
    gain="nothing: others' files are removed by the same call",
    defence="the supervisor's own uid limits the time of each account, including steps that succeed",
)  # fmt: skip
async def test_an_output_that_stays_open_delays_no_other_account(either: Cluster, storage: StoragePaths) -> None:
    holder, (first, _) = await left_behind(either, OF_CUSTOMER, storage, files=1000)
    _, others = await left_behind(either, OF_OTHER, storage, files=1)
    uid = holder.run.stat().st_uid
    more = [f"0x{number:064x}.1" for number in range(30)]
    for name in more:
        assert holder.does(f"cp -r {storage.job}/{uid}/{first.storage} {storage.job}/{uid}/{name}")
    with disturbing(holder, "hold") as held:
        wanted = [first, *(Leftover(first.key, name) for name in more), *others]
        removed = await either.leftovers.remove(first.key, storage.job, wanted)
    assert held
    assert {one for one in removed if one.key != first.key} == set(others)
