"""A customer with running jobs hinders the supervisor by signals, descriptors, locks and a full disk.

Login node and compute node are one machine here, so the customer's jobs can reach each process of the supervisor that
has the customer's uid. The supervisor is root, or an ordinary account with sudo and the wrapper.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pwd import getpwnam
from statistics import median
from typing import Any

import pytest

from deepgrid.errors import GridError, SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.scripts import read_script
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests.attacks.blocked_ground import Ground, all_recorded, blocked, cluster, ground, locked, monitor, of, runs
from tests.attacks.claims import Books, supervisor
from tests.attacks.on_slurm import ALICE, BOB, ENDED, Person
from tests.attacks.saboteur import descriptors, sabotage
from tests.slurm.support import WAIT_S, bash, ended, new_key, printed
from tests.waiting import until, wait_until

__all__ = ["blocked", "cluster", "ground", "monitor"]
pytestmark = [pytest.mark.long, pytest.mark.skipif(os.getuid() != 0, reason="accounts are made by root")]
SIGNALS = (signal.SIGSTOP, signal.SIGKILL)


@pytest.mark.attack(
    "stops or kills each process of its account on the login node, then cancels", attacker="a customer",
    gain="nothing: the job ends at once",
    defence="the commands that cancel a job run as the supervisor or root, never under the customer's uid",
)  # fmt: skip
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
async def test_a_cancel_cannot_be_signalled(
    ground: Ground, cluster: Cluster, monitor: SlurmMonitor, number: signal.Signals
) -> None:
    keys = [await runs(cluster, ALICE) for _ in range(3)]
    with sabotage(ground.alice, number):
        await asyncio.gather(*map(cluster.cancel, keys))
        for key in keys:
            assert (await ended(monitor, key)).state == "CANCELLED"


@pytest.mark.attack(
    "submits a job of its own, and stops or kills each process of its account that could end it", attacker="a customer",
    gain="nothing: the job is ended", defence="the commands that end a job run as the supervisor or root",
)  # fmt: skip
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
async def test_the_end_of_a_foreign_job_cannot_be_signalled(
    ground: Ground, cluster: Cluster, number: signal.Signals
) -> None:
    await all_recorded(cluster, await runs(cluster, ALICE, "echo works"))  # so that the ledger knows the customer
    alice = ground.alice
    options = [f"--uid={alice.uid}", f"--gid={getpwnam(alice.name).pw_gid}", "--chdir=/tmp", "--output=/dev/null"]
    foreign = int(ground.box.slurm("sbatch", "--parsable", *options, "--wrap=sleep 600"))
    with sabotage(alice, number):
        queue = await cluster.queue(new_key())
        assert await cluster.end_foreign([row for row in queue.foreign if row.slurm_id == foreign]) == [foreign]
        await until(lambda: ground.state(foreign) in ENDED)


# The abuse that a process under the account's uid is capable of: it lists its descriptors, keeps its output open
# forever in a child process, floods it, and stops itself.
THIEF = """
import os, signal, sys, time
print(sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:-1], sorted(os.environ), flush=True)
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if sys.argv[1] == "flood":
        try:
            while True:
                os.write(1, b"x" * 65536)
        except OSError:
            pass
    time.sleep(3600)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.attack(
    "keeps, floods and stops what the supervisor starts under its account", attacker="a customer",
    gain="nothing: no lock, no variable, 16 KiB of the shell's memory for as long as the command may take",
    defence="only three descriptors; output bounded in bytes and time, which are measured outside of the account",
)  # fmt: skip
@pytest.mark.parametrize("manner", ["hold", "flood"])
def test_what_runs_under_the_account_holds_nothing(ground: Ground, manner: str) -> None:
    done = _run_as_alice(ground, THIEF, manner)
    ended_with, size, *rest = done.stdout.splitlines()
    assert ended_with != "ended 0" and int(size) <= 16384, done
    if manner == "hold":
        assert rest[0].startswith("[0, 1, 2] ") and "SECRET" not in rest[0], rest


def _run_as_alice(ground: Ground, program: str, argument: str) -> subprocess.CompletedProcess[str]:
    """Run a program under the account and return what the supervisor reads. Kills its processes afterwards."""
    script = read_script("common.sh", "as_user.sh", "account.sh") + (
        "user=$1 uid=$2 become=$3; exec 7>&2 8< /dev/null 9> /dev/null; cd /\n"
        'as_user 3 /usr/bin/python3 -c "$4" "$5" < /dev/null\necho "ended $?"; printf "%s" "$said" | wc -c\n'
        'printf "%s" "$said" | head -n 1\n'
    )
    arguments = [ground.alice.name, str(ground.alice.uid), ground.settings.submits_by, program, argument]
    me = ground.settings.user
    login = [] if me == "root" else ["setpriv", f"--reuid={me}", f"--regid={me}", "--init-groups", "--"]
    try:
        return subprocess.run(
            [*login, "sh", "-c", script, "sh", *arguments], env={"PATH": "/usr/bin:/bin", "SECRET": "x"},
            capture_output=True, text=True, check=False, timeout=WAIT_S,
        )  # fmt: skip
    finally:
        subprocess.run(["pkill", "-KILL", "-u", str(ground.alice.uid)], check=False)


START_UP_FILES = (".profile", ".bash_profile", ".bash_login", ".bashrc", ".shrc", ".ssh/rc", ".ssh/environment")


@contextmanager
def at_home(person: Person, home: Path) -> Iterator[None]:
    """Give the account this home folder, which is its own."""
    os.chown(home, person.uid, -1)
    change = ["usermod", "--home"]
    subprocess.run([*change, str(home), person.name], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run(["pkill", "-KILL", "-u", str(person.uid)], check=False)  # usermod refuses accounts at work
        back = [*change, "/", person.name]
        wait_until(lambda: subprocess.run(back, check=False, capture_output=True).returncode == 0)


@pytest.mark.attack(
    "writes start-up files of shells and of sshd into its home", attacker="a customer",
    gain="nothing: the supervisor's commands do not read them",
    defence="no login shell and no shell with a terminal is started under the account",
)  # fmt: skip
async def test_no_start_up_file_of_the_account_is_read(ground: Ground, cluster: Cluster, monitor: SlurmMonitor) -> None:
    with tempfile.TemporaryDirectory(prefix="dg-home-") as folder, at_home(ground.alice, home := Path(folder)):
        (home / ".ssh").mkdir()
        for name in START_UP_FILES:
            (home / name).write_text(f"echo $0 ${{SLURM_JOB_ID-none}} >> {folder}/read\n")
        _run_as_alice(ground, "print()", "")
        key = await runs(cluster, ALICE)
        await cluster.cancel(key)
        assert (await ended(monitor, key)).state == "CANCELLED"
        outside = [line for line in _read(home) if line.endswith(" none")]
    assert outside == ["login none"]  # a login shell does read them


def _read(home: Path) -> list[str]:
    """Return what the start-up files wrote. A login shell reads them last."""
    subprocess.run(["sh", "-lc", "true", "login"], env={"HOME": str(home), "PATH": "/usr/bin:/bin"}, check=True)
    return (home / "read").read_text().splitlines()


@pytest.mark.attack(
    "stops the process above what the supervisor starts under its account, which stops sudo too", attacker="a customer",
    gain="nothing: no process of the supervisor is left",
    defence="the supervisor kills its processes when the time is over",
)  # fmt: skip
def test_what_is_stopped_under_the_account_leaves_no_process(ground: Ground) -> None:
    token = secrets.token_hex(16)
    _run_as_alice(ground, "import os, signal; os.kill(os.getppid(), signal.SIGSTOP)", token)
    left = ["pgrep", "-f", token]
    wait_until(lambda: subprocess.run(left, check=False, stdout=subprocess.DEVNULL).returncode == 1, lambda: left)


@pytest.mark.attack(
    "stops what the supervisor starts under its account at a submission", attacker="a customer",
    gain="its own job waits; others are not delayed",
    defence="a stopped process holds no lock of the supervisor, and nothing waits for it",
)  # fmt: skip
async def test_a_stopped_submission_holds_no_lock(ground: Ground, cluster: Cluster, monitor: SlurmMonitor) -> None:
    other = new_key()
    with sabotage(ground.alice, signal.SIGSTOP, "sh"):
        key, submission = await stopped_submission(ground, cluster)
        held = descriptors_of(ground.alice)
        await cluster.submit(other, bash("true"), of(BOB))
        assert (await ended(monitor, other)).state == "COMPLETED"
        await asyncio.wait([submission])
        error = submission.exception()
        assert error is None or (isinstance(error, GridError) and ground.alice.name in error.message), error
        await cluster.cancel(key)
    assert all(set(found) <= {0, 1, 2, 10} for found in held.values()), held  # dash moves its script to descriptor 10
    assert not [target for found in held.values() for target in found.values() if target.endswith("/lock")], held


async def stopped_submission(ground: Ground, cluster: Cluster) -> tuple[JobKey, asyncio.Task[Any]]:
    """Start a submission and stop processes of the account during it. Some end before the account's loop sees them."""
    while True:
        key = new_key()
        submission = asyncio.create_task(cluster.submit(key, bash("true"), of(ALICE)))
        if ground.settings.user == "root":  # it starts nothing under the account at a submission
            return key, submission
        while not submission.done():
            if any(descriptors_of(ground.alice).values()):
                return key, submission
            await asyncio.sleep(0.05)
        await submission


def descriptors_of(person: Person) -> dict[str, dict[int, str]]:
    """Return the descriptors of what a submission starts under the account."""
    return {name: descriptors(person.uid, name) for name in ("sh", "env", "timeout")}


@pytest.mark.attack(
    "keeps ten cancels of its jobs waiting", attacker="a customer", gain="nothing: they wait alone",
    defence="places per account, and channels that are kept free for polls",
)  # fmt: skip
async def test_waiting_cancels_of_one_customer_delay_nobody_else(ground: Ground, cluster: Cluster) -> None:
    keys = [await runs(cluster, ALICE) for _ in range(10)]
    his = [await runs(cluster, BOB) for _ in range(6)]
    await cluster.snapshot(keys[:5])  # it uses account numbers, a submission uses names
    alone_s = [await _poll_and_cancel_s(cluster, keys, key) for key in his[:3]]
    with locked(*(ground.box.folder(key) for key in keys)):
        cancels = [asyncio.create_task(cluster.cancel(key)) for key in keys]
        await asyncio.sleep(0)  # they are first in the queue
        beside_s = [await _poll_and_cancel_s(cluster, keys, key) for key in his[3:]]
        assert not any(cancel.done() for cancel in cancels), "others went first; the locks are awaited for 20 s"
    await asyncio.gather(*cancels)
    assert median(beside_s) <= median(alone_s) + 2


async def _poll_and_cancel_s(cluster: Cluster, keys: list[JobKey], his: JobKey) -> float:
    """Return the seconds that a poll of all claims and another customer's cancel take."""
    began = time.monotonic()
    await cluster.snapshot([*keys, his])
    await cluster.cancel(his)
    return time.monotonic() - began


@pytest.mark.attack(
    "keeps the lock of its claim", attacker="a customer", gain="nothing: its own records stay in the spool",
    defence="each claim of a batch has its own answer; a batch waits one second for locks",
)  # fmt: skip
async def test_a_held_lock_delays_no_other_acknowledgement(ground: Ground, cluster: Cluster) -> None:
    keys = [await runs(cluster, customer, "echo works") for customer in (ALICE, ALICE, BOB)]
    await all_recorded(cluster, *keys)
    with locked(ground.box.folder(keys[0])):
        first, *others = await asyncio.gather(*map(cluster.acknowledge, keys), return_exceptions=True)
    assert isinstance(first, SlurmUnreachable) and "lock" in first.message
    assert others == [None, None]
    spooled = await cluster.spooled()
    assert [key.comment in spooled for key in keys] == [True, False, False]
    await cluster.acknowledge(keys[0])
    assert keys[0].comment not in await cluster.spooled()


@pytest.mark.attack(
    "cancels at once; the payload ends like a refused start when it sees that", attacker="a customer", gain="nothing",
    defence="only a file that the account cannot create shows that nothing ran",
)  # fmt: skip
async def test_a_payload_that_looks_like_a_refused_start_is_billed(ground: Ground) -> None:
    books = Books()
    claim = books.claim(ALICE, "", minutes=20)
    folder = ground.box.folder(claim.key)
    claim.script = bash(f"echo works; until [ -e {folder}/tombstone ]; do :; done; exit 125")
    async with supervisor(books, ground.settings) as one, asyncio.timeout(WAIT_S):
        carried = asyncio.create_task(one.carry(claim))
        await printed(one.cluster, claim.key)
        books.cancel(claim)
        await carried
    assert books.bill(claim), books.outcome(claim)
