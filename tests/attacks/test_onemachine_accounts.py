"""Jobs on the one-machine grid attack its clusters, other customers and the machine."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from pwd import getpwnam

import pytest

from deepgrid.errors import ConfigurationError, SlurmError
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deployments.onemachine.slurm import ClusterSpec, accounts
from tests.attacks.two_customers import STRANGER, WITHIN_S, Scene, commands_of
from tests.running_site import running_site
from tests.slurm.people import remove_accounts
from tests.slurm.support import SMALL, bash, new_key, open_folder
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.getuid() != 0, reason="only root gives customers accounts of their own"),
]


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    alice, bob = (f"0x{os.urandom(20).hex()}" for _ in range(2))
    specs = [
        ClusterSpec(name, nodes=nodes, cpus_per_node=8, own_accounts=True)
        for name, nodes in (("alpha", 2), ("beta", 1))
    ]
    with open_folder() as folder:
        try:
            with running_site(folder, *specs) as (site, table):
                yield Scene(site, table, alice, bob)
        finally:
            remove_accounts(folder)


DAEMONS = {
    "setsid": "setsid sleep 1000 &",
    "without environment": "setsid env -i /bin/sleep 1000 < /dev/null > /dev/null 2>&1 &",
    "forked twice": "( ( trap '' TERM HUP INT; setsid sleep 1000 & ) & )",
    "called slurmstepd": "d=$(mktemp -d); cp /bin/sleep $d/slurmstepd; setsid $d/slurmstepd 1000 &",
    "in a namespace of its own": "setsid unshare --user --map-root-user sleep 1000 &",
    "starting itself again": "setsid sh -c 'trap \"\" TERM; while :; do setsid sleep 1000 & sleep 0.01; done' &",
    "holding the node's output": "setsid sh -c 'exec 3<>/dev/null; sleep 1000' &",
}


@pytest.mark.attack(
    "leaves daemons behind that continue to compute after the job",
    attacker="a customer's job on the one-machine grid",
    gain="the moment until the epilog ends them",
    defence="the epilog ends all processes with the account's uid after its last job on the cluster",
)
@pytest.mark.parametrize("daemon", DAEMONS.values(), ids=DAEMONS)
def test_daemons_are_ended(scene: Scene, daemon: str) -> None:
    alice = scene.account("alpha", scene.alice)
    job = scene.submit("alpha", alice, f"{daemon}\nsleep 0.5")
    scene.until_state("alpha", job, "COMPLETED")
    wait_until(lambda: commands_of(alice.uid) == [], lambda: commands_of(alice.uid))
    assert set(scene.box("alpha").slurm("sinfo", "-h", "-N", "-o", "%T").split()) <= {"idle", "mixed", "completing"}


@pytest.mark.attack(
    "leaves daemons behind after a cancellation or timeout, or on two nodes by srun",
    attacker="a customer's job on the one-machine grid",
    gain="the moment until the epilog ends them",
    defence="the epilog runs on each node after every end of a job",
)
@pytest.mark.parametrize("nodes", [1, 2])
def test_daemons_of_a_cancelled_job_are_ended(scene: Scene, nodes: int) -> None:
    alice = scene.account("alpha", scene.alice)
    script = "srun sh -c 'setsid sleep 1000 & sleep 1000' & setsid sleep 1000 & wait"
    job = scene.submit("alpha", alice, script, f"--nodes={nodes}", f"--ntasks={nodes}")
    scene.until_state("alpha", job, "RUNNING")
    wait_until(lambda: len(commands_of(alice.uid)) > 2 * nodes, lambda: commands_of(alice.uid))
    scene.box("alpha").slurm("scancel", str(job))
    scene.until_state("alpha", job, "CANCELLED")
    wait_until(lambda: commands_of(alice.uid) == [], lambda: commands_of(alice.uid))


@pytest.mark.attack(
    "uses the epilog of one job to end another job of the account, of another account, or of the other cluster",
    attacker="a customer's job on the one-machine grid",
    gain="nothing: only processes without a job are ended",
    defence="an account belongs to one customer on one cluster; while it has a job, none of its processes is ended",
)
def test_the_epilog_spares_other_jobs(scene: Scene) -> None:
    alice, bob = scene.account("alpha", scene.alice), scene.account("alpha", scene.bob)
    elsewhere = scene.account("beta", scene.alice)
    assert len({alice.uid, bob.uid, elsewhere.uid}) == 3
    staying = [("alpha", alice), ("alpha", bob), ("beta", elsewhere)]
    jobs = [(cluster, scene.submit(cluster, who, "sleep 999 & wait")) for cluster, who in staying]
    for cluster, job in jobs:
        scene.until_state(cluster, job, "RUNNING")
    for node in ("alpha-n1", "alpha-n2"):
        short = scene.submit("alpha", alice, "setsid sleep 888 & sleep 0.2", f"--nodelist={node}")
        scene.until_state("alpha", short, "COMPLETED")
    for _, who in staying:
        wait_until(lambda who=who: "sleep 999" in commands_of(who.uid), lambda who=who: commands_of(who.uid))  # type: ignore[misc]
    assert [scene.state(cluster, job) for cluster, job in jobs] == ["RUNNING"] * 3
    for cluster, job in jobs:
        scene.box(cluster).slurm("scancel", str(job))
    for _, who in staying:
        wait_until(lambda who=who: commands_of(who.uid) == [], lambda who=who: commands_of(who.uid))  # type: ignore[misc]


@pytest.mark.attack(
    "starts and ends many short jobs at once, so that an epilog runs while a job begins",
    attacker="a customer",
    gain="no job is ended by the epilog of another",
    defence="descendants of a slurmstepd are spared",
)
def test_jobs_that_begin_while_others_end_are_spared(scene: Scene) -> None:
    alice = scene.account("alpha", scene.alice)
    script = "setsid sleep 777 & for i in 1 2 3 4 5; do /bin/true || exit 1; sleep 0.1; done"
    jobs = [scene.submit("alpha", alice, script) for _ in range(24)]
    for job in jobs:
        wait_until(lambda job=job: scene.state("alpha", job) not in ("PENDING", "RUNNING", "COMPLETING"), lambda: job)  # type: ignore[misc]  # noqa: B023
        assert scene.state("alpha", job) == "COMPLETED"
    wait_until(lambda: commands_of(alice.uid) == [], lambda: commands_of(alice.uid))


@pytest.mark.attack(
    "gives the epilog another uid by the job's environment, name or comment",
    attacker="a customer's job on the one-machine grid",
    gain="nothing",
    defence="slurmd passes the uid; the epilog accepts only uids of this cluster's customers",
)
def test_the_epilog_ignores_a_uid_from_the_job(scene: Scene) -> None:
    bystander = subprocess.Popen(["setpriv", "--reuid=deepgrid-job", "--clear-groups", "sleep", "666"])
    victim = scene.account("beta", scene.bob)
    other = subprocess.Popen(["setpriv", f"--reuid={victim.uid}", "--clear-groups", "sleep", "666"])
    try:
        alice = scene.account("alpha", scene.alice)
        text = f"x SLURM_JOB_UID={victim.uid}"
        options = (f"--job-name={text}", f"--comment={text}", f"--export=ALL,SLURM_JOB_UID={victim.uid}")
        job = scene.submit("alpha", alice, f"export SLURM_JOB_UID={victim.uid}; setsid sleep 1 &", *options)
        scene.until_state("alpha", job, "COMPLETED")
        epilog = scene.site.state / "slurm" / "alpha" / "epilog"
        own = getpwnam(accounts.JOB_ACCOUNT).pw_uid
        for uid in (
            "",
            "0",
            "00",
            "-1",
            "+0",
            "0x0",
            "1 0",
            "0\n",
            "٠",
            f" {victim.uid}",
            str(own),
            str(victim.uid),
            "65534",
        ):
            done = subprocess.run([epilog], env={"SLURM_JOB_UID": uid}, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, ""), uid
        assert bystander.poll() is None and other.poll() is None
        assert os.stat(epilog).st_uid == 0 and not os.stat(epilog).st_mode & 0o022
    finally:
        for process in (bystander, other):
            process.kill()
            process.wait()


@pytest.mark.attack(
    "kills, traces, reads or cancels processes, files or jobs of another customer",
    attacker="a customer's job on the one-machine grid",
    gain="permission denied",
    defence="each customer has its own Unix account",
)
def test_another_customer_is_out_of_reach(scene: Scene) -> None:
    alice, bob = scene.account("alpha", scene.alice), scene.account("alpha", scene.bob)
    job = scene.submit("alpha", bob, "exec sleep 555")
    try:
        wait_until(lambda: "sleep 555" in commands_of(bob.uid), lambda: commands_of(bob.uid))
        slurm = scene.site.environment("alpha")["SLURM_CONF"]
        for attempt in (
            ["scancel", str(job)], ["scancel", "--signal=KILL", str(job)], ["scontrol", "requeue", str(job)],
            ["scontrol", "suspend", str(job)], ["scontrol", "update", f"jobid={job}", "timelimit=1"],
            ["pkill", "-KILL", "-u", bob.name], ["scontrol", "reconfigure"], ["scontrol", "shutdown"],
            ["sacctmgr", "-i", "add", "user", alice.name, "account=root", "adminlevel=Admin"],
            ["scontrol", "update", "nodename=alpha-n1", "state=down", "reason=x"],
        ):  # fmt: skip
            done = alice.run(["env", f"SLURM_CONF={slurm}", *attempt])
            assert scene.state("alpha", job) == "RUNNING", (attempt, done)
            assert "sleep 555" in commands_of(bob.uid), attempt
        levels = scene.box("alpha").slurm("sacctmgr", "-n", "-P", "show", "user", "format=user,adminlevel").splitlines()
        assert all(line.startswith("root|") for line in levels if "Admin" in line), levels
        pid = next(p.parent for p in Path("/proc").glob("[0-9]*/cmdline") if p.read_text() == "sleep\x00555\x00")
        assert not alice.can_read(pid / "environ")
    finally:
        scene.box("alpha").slurm("scancel", str(job))


@pytest.mark.attack(
    "uses the account without a job: by su, a login, cron or at; takes more uids in a user namespace",
    attacker="a customer's job on the one-machine grid",
    gain="nothing",
    defence="the account is expired, has no password and no subordinate uids",
)
def test_the_account_cannot_be_used_without_a_job(scene: Scene) -> None:
    alice = scene.account("alpha", scene.alice)
    shadow = next(line for line in Path("/etc/shadow").read_text().splitlines() if line.startswith(f"{alice.name}:"))
    assert shadow.split(":")[1] == "!" and shadow.split(":")[7] == "1"
    for file in ("/etc/subuid", "/etc/subgid"):
        assert alice.name not in (Path(file).read_text() if Path(file).exists() else "")
    assert alice.run(["id", "-G"]).stdout.split() == [str(alice.uid)]


@pytest.mark.attack(
    "asks for a job without admission, or with an invalid address",
    attacker="a stranger with a wallet",
    gain="a refusal",
    defence="the wallet has no account, and a request creates none",
)
async def test_a_stranger_gets_no_account(scene: Scene) -> None:
    settings = scene.site.login("alpha")
    assert settings.job_account is None and settings.own_account == accounts.JOB_ACCOUNT
    login = Login(settings)
    try:
        with pytest.raises(SlurmError, match="no account dg-alpha-5"):
            await Cluster(login, settings).submit(new_key(), bash("true"), replace(SMALL, customer=STRANGER))
    finally:
        await login.close()
    assert not accounts.exists(f"dg-alpha-{'5' * 20}")
    for address in ("", "root", "0x", "0x" + "5" * 39, "0x" + "5" * 41, "0x" + "g" * 40, f"0x{'5' * 40}\n", "--help"):
        with pytest.raises(ConfigurationError):
            scene.site.admit("alpha", address)


@pytest.mark.attack(
    "reads the files of the site: munge's key, Slurm's state, SSH keys, the accounting's database",
    attacker="a customer's job on the one-machine grid",
    gain="permission denied; the configuration is readable, and not secret",
    defence="modes of files and folders; MariaDB listens on no network and accepts only its own account",
)
def test_files_of_the_site_cannot_be_read(scene: Scene) -> None:
    alice = scene.account("alpha", scene.alice)
    shared = scene.site.state / "slurm"
    for secret in (
        "munge.key",
        "slurmdbd.conf",
        "alpha/ssh/client_ed25519",
        "alpha/ssh/host_ed25519",
        "database/ib_logfile0",
    ):
        assert (shared / secret).exists() and not alice.can_read(shared / secret), secret
    for folder in (
        "alpha/slurmctld",
        "alpha/login-home",
        "alpha/grid/spool",
        "alpha/grid/jobs",
        "database",
        "alpha/ssh",
    ):
        assert alice.run(["ls", "-A", str(shared / folder)]).stdout == "", folder
    private = next(Path("/tmp").glob("deepgrid-*/private"), None)
    assert private is None or alice.run(["ls", str(private)]).returncode != 0
    writable = alice.run(["find", str(shared), "-writable", "-not", "-type", "l"]).stdout.split()
    assert writable == []
    socket = next(
        word
        for word in Path(f"/proc/{scene.table.pid('mariadbd')}/cmdline").read_text().split("\0")
        if "socket=" in word
    )
    asked = alice.run(["mariadb", "--no-defaults", f"--{socket.removeprefix('--')}", "-e", "select 1"])
    assert asked.returncode != 0 and "1" not in asked.stdout


def test_remaining_processes_end_with_the_grid(scene: Scene) -> None:
    """Must be the last test of this file, because it stops the clusters."""
    alice = scene.account("alpha", scene.alice)
    left = subprocess.Popen(["setpriv", f"--reuid={alice.uid}", "--clear-groups", "env", "-i", "sleep", "444"])
    scene.site.stop(scene.table)
    assert left.wait(WITHIN_S) == -signal.SIGKILL
