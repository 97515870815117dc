"""A supervisor without root becomes its customers' accounts by sudo, and keeps its own files."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.errors import SlurmError, SlurmUnreachable
from deepgrid.lifecycle.job import JobKey
from deepgrid.lifecycle.slurm_state import Phase
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import Become, CustomerAccounts, LoginSettings
from deepgrid.slurm.submit import folders
from deepgrid.slurm.submit.folders import Leftover
from deepgrid.slurm.submit.protocol import SubmitRequest
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from tests.slurm.ordinary import operator, ordinary_supervisor
from tests.slurm.people import account, wallet_account
from tests.slurm.support import SMALL, WAIT_FOR_LEAVE, Box, LoginWith, bash, ended, printed, until

ALICE, BOB, CAROL = ("0x" + digit * 40 for digit in "abc")
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="accounts are made by root")


def of(customer: str) -> SubmitRequest:
    return replace(SMALL, customer=customer)


@pytest.fixture(scope="module")
def people() -> Iterator[dict[str, str]]:
    """Two customers with accounts, one of them named by a wallet, and a third whose account sudo refuses."""
    with account() as alice, wallet_account() as bob, account() as carol:
        yield {ALICE: alice, BOB: bob, CAROL: carol}


@pytest.fixture(scope="module")
def settings(box: Box, people: dict[str, str], state_folder: Path) -> Iterator[LoginSettings]:
    granted = CustomerAccounts({customer: people[customer] for customer in (ALICE, BOB)})
    folder = Path(tempfile.mkdtemp(dir=state_folder))
    folder.chmod(0o755)
    with ordinary_supervisor(box, folder, granted) as settings:
        yield replace(settings, accounts=CustomerAccounts(people))


@pytest.fixture
async def cluster(settings: LoginSettings) -> AsyncIterator[Cluster]:
    login = Login(settings)
    yield Cluster(login, settings)
    await login.close()


def folder_of(cluster: Cluster, key: JobKey) -> Path:
    return Path(cluster.settings.grid_root) / "jobs" / key.folder


async def test_a_job_runs_in_its_customers_account_and_leaves_the_supervisor_its_files(
    cluster: Cluster, monitor: SlurmMonitor, people: dict[str, str], key: JobKey
) -> None:
    for customer in (ALICE, BOB):
        one = replace(key, job_id=key.job_id * 10 + len(people[customer]))
        script = bash("id -un; pwd -P > where; stat -c %U where; echo $HOME")
        submission = await cluster.submit(one, script, of(customer))
        assert (await cluster.submit(one, bash("true"), of(customer))).slurm_id == submission.slurm_id
        assert (await ended(monitor, one)).state == "COMPLETED"
        folder = folder_of(cluster, one)
        said = (await cluster.read_output({one: 0}))[one].decode().splitlines()
        assert said == [people[customer]] * 2 + [f"{folder}/run"]
        own = {"account", "id", "intent", "limit", "lock", "spare", "ticket"}
        assert {file.owner() for file in [folder, *(folder / name for name in own)]} == {cluster.settings.user}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o711
        assert (folder / "output.log").owner() == people[customer]
        assert stat.S_IMODE((folder / "output.log").stat().st_mode) == 0o640
        assert (folder / "run").owner() == people[customer]


async def test_a_job_runs_after_a_hand_over_that_broke_off(
    cluster: Cluster, settings: LoginSettings, monitor: SlurmMonitor, key: JobKey
) -> None:
    """Its folders are made again, with the mark that tells the guard that nothing ran."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "ln").write_text("#!/bin/sh\nexit 1\n")
        (Path(folder) / "ln").chmod(0o755)
        login = LoginWith(Login(settings), PATH=f"{folder}:/usr/local/bin:/usr/bin:/bin")
        with pytest.raises(SlurmUnreachable, match="could not write"):
            await Cluster(login, settings).submit(key, bash("echo ran"), of(ALICE))
        await login.close()
    await cluster.submit(key, bash("echo ran"), of(ALICE))
    assert (await ended(monitor, key)).state == "COMPLETED"
    assert (await cluster.read_output({key: 0}))[key] == b"ran\n"


async def test_it_is_cancelled_while_it_runs(cluster: Cluster, monitor: SlurmMonitor, key: JobKey) -> None:
    await cluster.submit(key, bash(f"echo here; {WAIT_FOR_LEAVE}"), of(ALICE))
    monitor.watch(key)
    await until(monitor, key, Phase.RUNNING)
    await printed(cluster, key)
    await cluster.cancel(key)
    assert (await ended(monitor, key)).state == "CANCELLED"
    with pytest.raises(SlurmError, match="cancelled"):
        await cluster.submit(key, bash("true"), of(ALICE))


@pytest.mark.long  # adds an operator to accounting, which reports it to the controller
async def test_more_time_needs_an_operator_of_slurm(
    box: Box, cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    await cluster.submit(key, bash(WAIT_FOR_LEAVE), of(ALICE))
    monitor.watch(key)
    await until(monitor, key, Phase.RUNNING)
    with pytest.raises(SlurmError, match="Invalid user id|denied"):
        await cluster.set_time_limit(key, 17)
    with operator(box, cluster.settings.user):
        assert await cluster.set_time_limit(key, 17)
        assert (await cluster.queue(key)).claims[key].limit_minutes == 17
    await cluster.cancel(key)


async def test_an_account_that_sudo_refuses_is_a_refusal_with_its_reason(
    box: Box, cluster: Cluster, key: JobKey
) -> None:
    for _ in range(2):
        with pytest.raises(SlurmError, match="could not act as dg-.*sudo: ") as refusal:
            await cluster.submit(key, bash("true"), of(CAROL))
        assert not refusal.value.transient
    assert box.ids(key) == []
    assert sorted(file.name for file in folder_of(cluster, key).iterdir()) == [
        "account", "lock", "refused", "tombstone",
    ]  # fmt: skip
    assert await cluster.leftovers.remove(key, "/nowhere/at/all", [Leftover(key)]) == [Leftover(key)]
    assert not folder_of(cluster, key).exists()


async def test_uid_submission_without_root_is_refused(settings: LoginSettings, key: JobKey) -> None:
    login = Login(replace(settings, become=Become.UID))
    try:
        with pytest.raises(SlurmError, match="is not root, and cannot submit for"):
            await Cluster(login, login.settings).submit(key, bash("true"), of(ALICE))
    finally:
        await login.close()


async def test_other_accounts_reach_neither_output_nor_folder(
    cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    victim = replace(key, job_id=key.job_id * 10)
    await cluster.submit(victim, bash("echo secret | tee file"), of(ALICE))
    await ended(monitor, victim)
    folder, own = folder_of(cluster, victim), folder_of(cluster, key)
    tricks = [
        f"cat {folder}/output.log", f"cat {folder}/run/file", f"ls {folder}", f"ls {folder}/run", f"ls {folder}/place*",
        f"cat {folder}/account", f"echo forged >> {folder}/output.log", f"mkdir {folder}/run/started2",
        f"rm -f {own}/output.log && test ! -e {own}/output.log", f"ln -sf /etc/shadow {own}/output.log",
        f"touch {own}/tombstone", "touch ../output.log", f"rm {own}/run", f"cat {own}/id",
    ]  # fmt: skip
    body = "\n".join(f"( {trick} ) > /dev/null 2>&1 && echo 'worked: {trick}'" for trick in tricks)
    await cluster.submit(key, bash(f"{body}\necho done"), of(BOB))
    await ended(monitor, key)
    assert (await cluster.read_output({key: 0}))[key] == b"done\n"


async def test_the_logins_group_removes_no_file_of_a_job(cluster: Cluster, key: JobKey) -> None:
    """The group may create files in run/, for the supervisor's own files.

    The sticky bit protects the files of others.
    """
    await cluster.submit(key, bash(f"touch mine; echo up; {WAIT_FOR_LEAVE}"), of(ALICE))
    await printed(cluster, key)
    run = folder_of(cluster, key) / "run"
    assert _of_group(run.stat().st_gid, "touch", str(run / "beside")) == ""
    assert "not permitted" in _of_group(run.stat().st_gid, "rm", "-f", str(run / "mine"))
    assert (run / "mine").exists()
    await cluster.cancel(key)


def _of_group(number: int, *command: str) -> str:
    """Run a command as an account with this group, and return its error output."""
    member = ["setpriv", "--reuid=65534", f"--regid={number}", "--clear-groups", "--"]
    return subprocess.run([*member, *command], check=False, capture_output=True, text=True).stderr


async def test_the_folders_of_the_account_table_take_a_bounded_time_of_a_submission(
    cluster: Cluster, people: dict[str, str], state_folder: Path, key: JobKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Late folders wait for the first job of their own account."""
    monkeypatch.setattr(folders, "TABLE_WITHIN_S", 0)
    root = Path(tempfile.mkdtemp(dir=state_folder))
    root.chmod(0o1777)
    for customers in ([ALICE], [ALICE, BOB]):
        await cluster.make_storage(key, customers[-1], [f"{root}/"])
        assert {place.owner() for place in root.iterdir()} == {people[customer] for customer in customers}


TAMPER = """#!/bin/sh
place=$(cat)
/usr/bin/sudo -n -u {somebody} -- ln -s {target} "$place/output.log" || exit 9
printf '%s\\n' "$place" | /usr/bin/sudo "$@"
"""


async def test_a_file_that_another_account_puts_into_the_hand_over_folder_is_not_used(
    box: Box, settings: LoginSettings, people: dict[str, str], state_folder: Path, key: JobKey
) -> None:
    folder = Path(tempfile.mkdtemp(dir=state_folder))
    folder.chmod(0o755)
    target = folder / "of-alice"
    target.write_text("untouched")
    shutil.chown(target, people[ALICE])
    (folder / "sudo").write_text(TAMPER.format(somebody=people[BOB], target=target))
    (folder / "sudo").chmod(0o755)
    # Another account finds the folder where files change their owner, and acts first.
    tampered = LoginWith(Login(settings), PATH=f"{folder}:/usr/bin:/bin")
    try:
        with pytest.raises(SlurmError, match="could not act as .*(exists|cannot create)"):
            await Cluster(tampered, settings).submit(key, bash("true"), of(ALICE))
    finally:
        await tampered.close()
    assert target.read_text() == "untouched"
    assert box.ids(key) == []


@pytest.mark.long  # two jobs, one after the other, and their output
async def test_the_supervisors_own_jobs_run_in_the_account_that_it_names(
    settings: LoginSettings, people: dict[str, str]
) -> None:
    login = Login(replace(settings, own_account=people[ALICE]))
    batch = Cluster(login, login.settings).batch
    try:
        for _ in range(2):
            said = await batch.run(
                "deepgrid-benchmark-sudo-test", "#!/bin/bash\nid -un; mkdir -p a/b; echo $HOME > a/b/c",
                ["--ntasks=1"], limit_minutes=2, wait_minutes=2,
            )  # fmt: skip
            assert said.strip() == people[ALICE]
        assert list((Path(settings.grid_root) / "batch").iterdir()) == []
    finally:
        await login.close()


async def test_the_folder_of_a_claim_is_removed_with_the_jobs_files(
    cluster: Cluster, monitor: SlurmMonitor, key: JobKey
) -> None:
    """The supervisor cannot remove files of other accounts. Their owner removes them, and follows no link."""
    await cluster.submit(key, bash("mkdir -p shut/in; chmod 0 shut; ln -s /etc etc; touch file"), of(ALICE))
    await ended(monitor, key)
    nowhere = "/nowhere/at/all"
    assert Leftover(key) in await cluster.leftovers.find(key, nowhere, keep_days=-1)
    assert await cluster.leftovers.remove(key, nowhere, [Leftover(key)]) == [Leftover(key)]
    assert not folder_of(cluster, key).exists()
    assert list((Path(cluster.settings.grid_root) / "removed").iterdir()) == []
