"""A job's account tampers with its output while the supervisor follows it and the output of other jobs."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deepgrid.errors import SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.shared.log_shipping import LogShipper, LogShippingSettings
from deepgrid.services.messages import LogPosition
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import CustomerAccounts, LoginSettings
from deepgrid.slurm.submit.protocol import SubmitRequest
from tests.attacks.intruder import Intruder, intruder
from tests.provider.logs_support import Service
from tests.slurm.ordinary import ordinary_supervisor
from tests.slurm.people import account
from tests.slurm.support import SMALL, WAIT_S, Box, new_key

LIMIT = 4096
CUSTOMER = "0x" + "a" * 40
JOB, DEFENCE = "a job's account", "reads are bounded per job, and open only regular files, without waiting"
PROMPT_S = 20.0  # far below the timeout of a command on the login node
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="accounts are made by root")


@pytest.fixture(scope="module")
def by_sudo(box: Box, state_folder: Path) -> Iterator[LoginSettings]:
    """A supervisor without root that becomes its customers' accounts by sudo."""
    folder = Path(tempfile.mkdtemp(dir=state_folder))
    folder.chmod(0o755)
    with account() as name, ordinary_supervisor(box, folder, CustomerAccounts({CUSTOMER: name})) as settings:
        yield settings


@pytest.fixture(params=["root", "sudo"])
async def cluster(request: pytest.FixtureRequest, box: Box) -> AsyncIterator[Cluster]:
    """The cluster of a supervisor that runs as root, or that uses sudo."""
    settings = request.getfixturevalue("by_sudo") if request.param == "sudo" else box.settings
    login = Login(settings)
    yield Cluster(login, settings)
    await login.close()


OF_CUSTOMER = replace(SMALL, customer=CUSTOMER)


async def both(cluster: Cluster, attacker: JobKey, other: JobKey) -> tuple[bytes, bytes]:
    """Read the outputs of both jobs, in a time that is acceptable for other jobs."""
    async with asyncio.timeout(PROMPT_S):
        found = await cluster.read_output({attacker: 0, other: 0}, LIMIT)
    return found.get(attacker, b""), found.get(other, b"")


@pytest.mark.attack(
    "makes its output a sparse file of a terabyte",
    attacker=JOB, gain="one page of zeros per second in its own log", defence=DEFENCE,
)  # fmt: skip
async def test_a_sparse_output_delays_no_other_log(cluster: Cluster, key: JobKey) -> None:
    other = new_key()
    async with intruder(cluster, key, OF_CUSTOMER) as job, intruder(cluster, other, OF_CUSTOMER):
        assert job.does("truncate -s 1T $F/output.log")
        mine, others = await both(cluster, key, other)
        assert (len(mine), others) == (LIMIT, b"up\n")
        async with asyncio.timeout(PROMPT_S):
            far = await cluster.read_output({key: 2**40 - 10, other: 0}, LIMIT)
        assert (len(far[key]), far[other]) == (10, b"up\n")


@pytest.mark.attack(
    "truncates its output, or makes it unreadable",
    attacker=JOB, gain="its own log ends", defence=DEFENCE,
)  # fmt: skip
@pytest.mark.parametrize("deed", [": >$F/output.log", "chmod 000 $F/output.log"])
async def test_a_truncated_or_unreadable_output_ends_only_its_own_log(cluster: Cluster, key: JobKey, deed: str) -> None:
    other = new_key()
    async with intruder(cluster, key, OF_CUSTOMER) as job, intruder(cluster, other, OF_CUSTOMER):
        assert job.does(deed)
        mine, others = await both(cluster, key, other)
        assert (mine in (b"", b"up\n"), others) == (True, b"up\n")
        assert await cluster.read_output({key: 3, other: 3}, LIMIT) == {}


REPLACED = [
    "rm -f $F/output.log", "mv $F/output.log $F/run/", "mkfifo $F/fifo; mv -T $F/fifo $F/output.log",
    "ln -sfT /etc/passwd $F/output.log", "mkfifo run; mv -T run $F/output.log", "mv -T $F/run $F/run2",
    "ln -sfT /etc $F/run", "echo 1 >$F/id", "rm -f $F/account", "touch $F/tombstone", "ln /etc/hostname $F/record",
]  # fmt: skip


@pytest.mark.attack(
    "replaces its output, or other files of its claim, by its own links, FIFOs and files",
    attacker=JOB, gain="nothing", defence="the supervisor owns the claim's folder; the job owns two names in it",
)  # fmt: skip
async def test_replaced_files_of_a_claim_give_nothing(cluster: Cluster, key: JobKey) -> None:
    async with intruder(cluster, key, OF_CUSTOMER) as job:
        before = {path.name: path.lstat().st_ino for path in job.folder.iterdir()}
        for deed in REPLACED:
            assert not job.does(deed), deed
        assert {path.name: path.lstat().st_ino for path in job.folder.iterdir()} == before
        assert stat.S_ISREG(job.log.lstat().st_mode)


class Services:
    """One log per job, as the log service keeps them."""

    def __init__(self) -> None:
        self.logs: defaultdict[int, Service] = defaultdict(Service)

    async def ship_log(self, job_id: int, *place: Any, **more: Any) -> LogPosition:
        return await self.logs[job_id].ship_log(job_id, *place, **more)


@pytest.mark.attack(
    "writes without end, with a file of a terabyte",
    attacker=JOB, gain="64 MiB of log per job",
    defence="the supervisor ships head and tail, and at most this much per job",
)  # fmt: skip
async def test_an_endless_log_is_bounded(cluster: Cluster, key: JobKey) -> None:
    bound = 10_000
    settings = LogShippingSettings(poll_s=0.05, bytes_per_s=80_000, max_bytes_per_job=bound)
    other, services = new_key(), Services()
    async with intruder(cluster, key, OF_CUSTOMER) as job, intruder(cluster, other, OF_CUSTOMER):
        assert job.does("truncate -s 1T $F/output.log")
        async with LogShipper(cluster, services, settings) as shipper:
            shipper.follow(key)
            shipper.follow(other)
            async with asyncio.timeout(WAIT_S):
                await shipper.finish(key)
                await shipper.finish(other)
    mine, others = services.logs[key.job_id], services.logs[other.job_id]
    assert bound // 2 < len(mine.log) <= bound and others.log == b"up\n"
    assert (mine.closed, others.closed, others.at.left_out) == (True, True, 0)
    assert mine.at.left_out > 2**40 - bound


@pytest.fixture
async def shared_account(box: Box) -> AsyncIterator[Cluster]:
    """A cluster where jobs run in the login's account, with all rights of the supervisor there."""
    settings = replace(box.settings, job_account=None)
    login = Login(settings)
    yield Cluster(login, settings)
    await login.close()


@pytest.mark.attack(
    "replaces its output by a FIFO, a device, a link or a folder, where jobs share the supervisor's account",
    attacker="a job in the supervisor's own account", gain="its own log ends", defence=DEFENCE,
)  # fmt: skip
@pytest.mark.parametrize(
    "thing",
    ["mkfifo", "mknod -m 666 $1 c 1 5; :", "mkfifo $1.fifo; ln -s $1.fifo", "ln -s /dev/zero", "ln -s /etc/passwd",
     "mkdir"],
    ids=["fifo", "device", "link to a FIFO", "link to a device", "link to a file", "folder"],
)  # fmt: skip
async def test_an_output_that_is_no_regular_file_ends_only_its_own_log(
    shared_account: Cluster, key: JobKey, thing: str
) -> None:
    other = new_key()
    async with intruder(shared_account, key) as job, intruder(shared_account, other):
        assert job.does(f"set -- $F/output.log; rm $1; {thing} $1")
        assert await both(shared_account, key, other) == (b"", b"up\n")


async def swaps(job: Intruder) -> None:
    """Replace file, FIFO and link by each other, as fast as possible."""
    script = (
        "set -- $F/output.log; for i in $(seq 200); do ln -sfT /dev/zero $1; rm $1; mkfifo $1; rm $1; echo up >$1; done"
    )
    await asyncio.to_thread(job.does, script)


@pytest.mark.attack(
    "swaps file, FIFO and link between the check and the read",
    attacker="a job in the supervisor's own account", gain="its own log ends", defence=DEFENCE,
)  # fmt: skip
async def test_an_output_swapped_before_the_read_ends_only_its_own_log(shared_account: Cluster, key: JobKey) -> None:
    other = new_key()
    async with intruder(shared_account, key) as job, intruder(shared_account, other):
        swapping = asyncio.create_task(swaps(job))
        while not swapping.done():
            mine, others = await both(shared_account, key, other)
            assert (mine in (b"", b"up\n"), others) == (True, b"up\n")


@pytest.fixture
def full(box: Box, state_folder: Path) -> Iterator[Path]:
    """The grid's folders on a full disk."""
    root = Path(tempfile.mkdtemp(dir=state_folder)) / "grid"
    root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=755", "tmpfs", str(root)], check=True)
    for name in ("jobs", "spool"):
        (root / name).mkdir()
        (root / name).chmod(0o755)
    yield root
    subprocess.run(["umount", "--lazy", str(root)], check=True)


def fill(root: Path) -> Path:
    """Fill the disk, as a job does with its output."""
    filler = root / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)
    except OSError:
        return filler


@pytest.mark.attack(
    "fills the disk of the grid's folder",
    attacker=JOB, gain="submissions and logs wait while the disk is full",
    defence="a failed submission is transient, leaves no partial file, and happens once when there is space",
)  # fmt: skip
async def test_submissions_and_logs_wait_while_the_disk_is_full(box: Box, full: Path, key: JobKey) -> None:
    settings = replace(box.settings, grid_root=str(full))
    login = Login(settings)
    cluster, filler = Cluster(login, settings), fill(full)
    request: SubmitRequest = SMALL
    try:
        with pytest.raises(SlurmUnreachable) as refusal:
            await cluster.submit(key, f"#!/bin/sh\n: {'x' * 9000}\necho ran\n", request)
        assert refusal.value.transient
        assert box.ids(key) == []
        filler.unlink()
        submission = await cluster.submit(key, f"#!/bin/sh\n: {'x' * 9000}\necho ran\n", request)
        assert box.ids(key) == [submission.slurm_id]
        await cluster.cancel(key)
    finally:
        await login.close()
