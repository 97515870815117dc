"""A stolen login account and a customer's account try to misuse the submission wrapper."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from deepgrid.slurm.ssh.login_settings import Become
from tests.attacks.on_slurm import ENDED, Claim, Person, Said, Site
from tests.slurm.ordinary import hook_for, wrapper_for
from tests.slurm.people import account, wallet_account
from tests.slurm.support import bash, new_key


@dataclass(frozen=True)
class Wrapped:
    """The supervisor's login account, and the wrapper that it may run as root."""

    site: Site
    login: Person
    path: str
    folder: Path

    def options(self) -> list[str]:
        """Return the options of a submission of Alice's claim."""
        return [
            "--parsable", "--no-requeue", "--job-name=0xa11ce", "--comment=deepgrid:31337:1", "--open-mode=append",
            f"--output={self.folder}/output.log", f"--chdir={self.folder}/run", "--ntasks=1", "--time=1",
        ]  # fmt: skip

    def run(self, account: str, *options: str, script: str = "#!/bin/sh\nid -un\n", **variables: str) -> Said:
        return self.login.run("sudo", "-n", "--", self.path, account, *options, stdin=script, **variables)


@pytest.fixture(scope="module")
def wrapped(site: Site) -> Iterator[Wrapped]:
    with ExitStack() as stack:
        login = stack.enter_context(account())
        settings = replace(site.settings, user=login, become=Become.SUDO)
        settings = stack.enter_context(wrapper_for(site.box, settings))
        stack.enter_context(hook_for(site.box, settings))
        folder = site.box.folder(new_key())
        (folder / "run").mkdir(parents=True)
        yield Wrapped(site, Person(site.box, login), settings.submit_wrapper, folder)


def test_it_submits_for_the_accounts_of_the_grid(wrapped: Wrapped) -> None:
    for person in (wrapped.site.alice, wrapped.site.bob):
        before = person.jobs()
        said = wrapped.run(person.name, *wrapped.options())
        assert said.status == 0, said
        slurm_id = int(said.text)
        assert person.jobs() == [*before, slurm_id]
        wrapped.site.until(slurm_id, *ENDED)
    assert wrapped.login.run("sudo", "-n", "--", wrapped.path, "--version").text.startswith("deepgrid-sbatch ")


OPTIONS = {
    "another account or group": ["--uid=0", "--gid=0", "-u0", "--get-user-env", "--export-file=/etc/shadow"],
    "a command or another script": ["--wrap=id", "/etc/shadow", "-", "--", "-a1", "--array=1-9", ":", "--hold"],
    "files read as root (--bbf, --container)": [
        "--bb=x", "--bbf=/etc/shadow", "--container=/etc", "--input=/etc/shadow", "--error=/tmp/x", "-i/etc/shadow",
    ],
    "other options": [
        "--export=ALL,LD_PRELOAD=/tmp/x", "-D/", "--requeue", "--reservation=x", "--priority=1", "--exclusive", "-x",
        "--clusters=all", "--comm=deepgrid:x", "--nodelist=attack-n1", "--qos=x", "--time", "--begin=now+1hour",
    ],
    "strange values": [
        "--comment=free", "--comment=deepgrid:a b", "--comment=deepgrid:a\nb", "--job-name=a\nb", "--job-name=-x",
        "--job-name=$(id)", "--time=1-0", "--time=1;id", "--ntasks=-1", "--ntasks=1 --wrap=id", "--partition=a b", "",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(
            options, id=what,
            marks=pytest.mark.attack(
                f"pass the wrapper {what}", attacker="an attacker with the supervisor's login account", gain="nothing",
                defence="deepgrid-sbatch accepts only known options with plain values",
            ),
        )
        for what, options in OPTIONS.items()
    ],
)  # fmt: skip
def test_other_options_are_refused(wrapped: Wrapped, options: list[str]) -> None:
    before = wrapped.site.box.slurm("squeue", "-h", "-a", "-t", "all", "-o", "%A")
    for option in options:
        said = wrapped.run(wrapped.site.alice.name, *wrapped.options(), option)
        assert said.status == 1 and "deepgrid-sbatch: " in said.text, (option, said)
    assert wrapped.site.box.slurm("squeue", "-h", "-a", "-t", "all", "-o", "%A") == before


@pytest.mark.attack(
    "submit as root, as another user, or by number", attacker="an attacker with the supervisor's login account",
    gain="nothing",
    defence="deepgrid-sbatch knows the customers' accounts, by name and pattern",
)  # fmt: skip
def test_other_accounts_are_refused(wrapped: Wrapped) -> None:
    alice = wrapped.site.alice
    with account() as other, wallet_account(0) as like_root:
        names = [
            "root",
            "0",
            "+0",
            str(alice.uid),
            other,
            wrapped.login.name,
            "nobody",
            "",
            " ",
            f"{alice.name} x",
            "-h",
        ]
        names += [f"{alice.name}\nroot", "0x" + "f" * 39, "0x" + "f" * 40, f"{alice.name},root", "*", like_root]
        for name in names:
            said = wrapped.run(name, *wrapped.options())
            assert said.status == 1 and "deepgrid-sbatch: " in said.text, (name, said)


@pytest.mark.attack(
    "write output or start outside the grid's folders", attacker="an attacker with the supervisor's login account",
    gain="nothing", defence="deepgrid-sbatch accepts only paths in folders of jobs",
)  # fmt: skip
def test_other_paths_are_refused(wrapped: Wrapped) -> None:
    root = wrapped.site.settings.grid_root
    paths = [
        "/etc/passwd", f"{root}/jobs/../../x", f"{root}/jobs/x/../../../y", f"{root}/spool/1.2", f"{root}/jobs", "x/y",
        f"{root}/jobs/x/%u", f"{root}/jobs/x/a b", f"{root}/jobs//x", f"{root}/jobs/x/.", f"{root}x/jobs/a/b", "",
    ]  # fmt: skip
    for option in ("--output", "--chdir"):
        for path in paths:
            said = wrapped.run(wrapped.site.alice.name, *wrapped.options(), f"{option}={path}")
            assert said.status == 1 and "deepgrid-sbatch: " in said.text, (option, path, said)
        rest = [one for one in wrapped.options() if not one.startswith(option)]
        assert wrapped.run(wrapped.site.alice.name, *rest).status == 1, "it must be named"


SCRIPTS = [
    "#!/bin/sh\n#SBATCH --job-name=evil\n#SBATCH --export-file=/etc/shadow\n#SBATCH --get-user-env\ntrue\n",
    "#!/bin/sh\n#SBATCH --uid=0\n#BSUB -J evil\n#PBS -N evil\n#BSUB -i /etc/shadow\ntrue\n#SBATCH --bbf=/etc/shadow\n",
    "#!/bin/sh\n#SBATCH --array=1-9\n#SBATCH hetjob\n#SBATCH -n1\n#BB_LUA x\n#DW jobdw\ntrue\n",
]


@pytest.mark.attack(
    "options in the script", attacker="an attacker with the supervisor's login account", gain="nothing",
    defence="a command precedes the script's second line, and --ignore-pbs is set",
)  # fmt: skip
def test_options_in_the_script_have_no_effect(wrapped: Wrapped) -> None:
    for script in SCRIPTS:
        said = wrapped.run(wrapped.site.alice.name, *wrapped.options(), script=script)
        assert said.status == 0, said
        record = wrapped.site.record(int(said.text))
        assert "JobName=0xa11ce" in record and f"UserId={wrapped.site.alice.name}(" in record
        assert "evil" not in record and "Array" not in record and "StdIn=/dev/null" in record
        wrapped.site.until(int(said.text), *ENDED)
    for script in ("", "#SBATCH --uid=0\n", "id\n", "\x7fELF", "#!sh\n"):
        said = wrapped.run(wrapped.site.alice.name, *wrapped.options(), script=script)
        assert said.status == 1 and "script" in said.text, (script, said)


@pytest.mark.attack(
    "an environment for root's sbatch (SBATCH_*, SLURM_CONF, PATH, ENV)",
    attacker="an attacker with the supervisor's login account", gain="nothing", defence="sudo and the wrapper clear it",
)  # fmt: skip
def test_the_environment_is_cleared(wrapped: Wrapped, tmp_path: Path) -> None:
    evil = tmp_path / "sbatch"
    evil.write_text(f"#!/bin/sh\nid > {tmp_path}/evil\n")
    evil.chmod(0o755)
    variables = {
        "PATH": f"{tmp_path}:/usr/bin:/bin", "SBATCH_JOB_NAME": "evil", "SBATCH_EXCLUSIVE": "exclusive", "IFS": "x",
        "SBATCH_GET_USER_ENV": "1", "SBATCH_EXPORT": "NIL", "BASH_ENV": str(evil), "SLURM_CONF": "/tmp/none",
        "ENV": str(evil),
    }  # fmt: skip
    said = wrapped.run(wrapped.site.alice.name, *wrapped.options(), **variables)
    assert said.status == 0, said
    assert "evil" not in (record := wrapped.site.record(int(said.text))) and "OverSubscribe=OK" in record
    assert not (tmp_path / "evil").exists()
    wrapped.site.until(int(said.text), *ENDED)


@pytest.mark.attack(
    "run or change the wrapper", attacker="a job's account", gain="nothing",
    defence="sudoers names the supervisor's account only; root owns the file",
)  # fmt: skip
def test_a_customer_can_neither_run_nor_change_it(wrapped: Wrapped) -> None:
    alice = wrapped.site.alice
    before = alice.jobs()
    for command in (["sudo", "-n", wrapped.path], [wrapped.path], ["sh", wrapped.path]):
        said = alice.run(*command, alice.name, *wrapped.options(), stdin=bash("id"))
        assert said.status != 0, said
    for who in (alice, wrapped.login):
        assert who.run("tee", "-a", wrapped.path, stdin="id").status != 0
        assert who.run("sudo", "-n", "sbatch", "--wrap=id").status != 0
    assert alice.jobs() == before


@pytest.mark.attack(
    "cancel jobs of others by the wrapper", attacker="an attacker with the supervisor's login account", gain="nothing",
    defence="deepgrid-sbatch cancels by plain numbers, and only jobs of the named account",
)  # fmt: skip
def test_only_jobs_of_the_account_are_cancelled(wrapped: Wrapped, bobs: Claim) -> None:
    alice = wrapped.site.alice
    for place in (wrapped.folder, wrapped.folder / "run"):
        shutil.chown(place, alice.name)
    own = int(wrapped.run(alice.name, *wrapped.options(), script="#!/bin/sh\nsleep 600\n").text)
    wrapped.site.until(own, "RUNNING")
    for ids in (["--user=root"], ["-b"], ["1_2"], ["1.0"], [""], [], ["1 2"], [str(own), "--signal=STOP"]):
        said = wrapped.run(alice.name, "--cancel", *ids)
        assert said.status == 1 and "deepgrid-sbatch: " in said.text, (ids, said)
    wrapped.run(alice.name, "--cancel", str(bobs.slurm_id))
    assert wrapped.site.state(bobs.slurm_id) == "RUNNING"
    assert wrapped.run(alice.name, "--cancel", str(own)).status == 0
    wrapped.site.until(own, "CANCELLED")
