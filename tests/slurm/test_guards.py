"""The guards against strangers' jobs: the missing ones, for the facts of many sites and on real clusters."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.errors import ConfigurationError, SlurmUnreachable
from deepgrid.findings import Level
from deepgrid.slurm.setup.guards import GUARDS, NAMES, Gate, ask_guards, check_gaps, judge_guards, missing_guards
from deepgrid.slurm.setup.hook_text import Identities, submit_hook, submit_wrapper, version_of
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import Become, CustomerAccounts, LoginSettings
from tests.slurm.ordinary import hook_for, ordinary_supervisor
from tests.slurm.people import account
from tests.slurm.support import Box

ALICE, BOB = "0x" + "a" * 40, "0x" + "b" * 40
TABLE = LoginSettings(
    "host", 22, "root", Path("key"), Path("known"), "/srv/grid", accounts=CustomerAccounts({ALICE: "alice", BOB: "bob"})
)
SUDO = replace(TABLE, user="grid", become=Become.SUDO)
WRAPPED = replace(SUDO, submit_wrapper="/usr/local/sbin/deepgrid-sbatch")
NOT_HERE = {"proctrack", "task_plugin", "contain", "private_tmp", "disk_quota", "connections"}


def facts_of(login: LoginSettings, **changes: str) -> dict[str, str]:
    """Return the facts of a site that has every guard for this login block."""
    uid = "0" if login.become is Become.UID else "990"
    who = Identities(login.user, int(uid), 64030)
    return {
        "account": login.user, "uid": uid, "slurm_uid": "64030", "conf": "/etc/slurm/slurm.conf",
        "ProctrackType": "proctrack/cgroup", "TaskPlugin": "task/cgroup,task/affinity", "PrologFlags": "Alloc,Contain",
        "PrivateData": "jobs,usage,users", "accounting_private": "jobs,usage", "EnforcePartLimits": "ALL",
        "JobContainerType": "job_container/tmpfs", "ScronParameters": "", "SlurmctldParameters": "",
        "connection_limits": "1", "mount_options": "rw,relatime,prjquota",
        "probe": f"sbatch: error: deepgrid hook {version_of(submit_hook(login, who))} allocation failure",
        "wrapper": f"deepgrid-sbatch {version_of(submit_wrapper(login, login.user, '/etc/slurm/slurm.conf'))}",
    } | changes  # fmt: skip


def missing(login: LoginSettings, **changes: str) -> set[str]:
    return {guard.name for guard in missing_guards(facts_of(login, **changes), login)}


@pytest.mark.parametrize("login", [TABLE, WRAPPED], ids=["root", "wrapper"])
def test_a_guarded_site_lacks_nothing(login: LoginSettings) -> None:
    assert missing(login) == set()
    (finding,) = judge_guards({}, (), trust_customers=False)
    assert finding.level is Level.GOOD


@pytest.mark.parametrize(
    ("login", "changes", "name"),
    [
        (replace(TABLE, accounts=CustomerAccounts()), {}, "accounts"),
        (replace(TABLE, job_account="others"), {}, "accounts"),
        (replace(TABLE, accounts=CustomerAccounts({ALICE: "one", BOB: "one"})), {}, "accounts"),
        (TABLE, {"probe": "sbatch: Job 5 to start at now"}, "submit_hook"),
        (TABLE, {"probe": "sbatch: error: deepgrid hook 0123456789abcdef"}, "submit_hook"),
        (TABLE, {"probe": facts_of(SUDO)["probe"]}, "submit_hook"),
        (SUDO, {}, "submission"),
        (WRAPPED, {"wrapper": "sudo: a password is required"}, "submission"),
        (WRAPPED, {"wrapper": "deepgrid-sbatch 0123456789abcdef"}, "submission"),
        (TABLE, {"ProctrackType": "proctrack/linuxproc"}, "proctrack"),
        (TABLE, {"TaskPlugin": "task/affinity"}, "task_plugin"),
        (TABLE, {"PrologFlags": ""}, "contain"),
        (TABLE, {"PrivateData": "none"}, "private_data"),
        (TABLE, {"PrivateData": "jobs"}, "private_data"),
        (TABLE, {"accounting_private": "none"}, "private_data"),
        (TABLE, {"EnforcePartLimits": "NO"}, "part_limits"),
        (TABLE, {"JobContainerType": "job_container/none"}, "private_tmp"),
        (TABLE, {"ScronParameters": "enable"}, "scrontab"),
        (TABLE, {"SlurmctldParameters": "idle_on_node_suspend,allow_user_triggers"}, "triggers"),
        (TABLE, {"connection_limits": "0"}, "connections"),
        (TABLE, {"mount_options": "rw,relatime,noquota"}, "disk_quota"),
        (TABLE, {"mount_options": "rw,uqnoenforce"}, "disk_quota"),
        (TABLE, {"mount_options": ""}, "disk_quota"),
    ],
)  # fmt: skip
def test_a_missing_guard_is_named(login: LoginSettings, changes: dict[str, str], name: str) -> None:
    assert missing(login, **changes) == {name}
    found = missing_guards(facts_of(login, **changes), login)
    for accepted, trusts, level in (((), False, Level.BAD), ((name,), False, Level.WARNING), ((), True, Level.WARNING)):
        (finding,) = judge_guards(found, accepted, trust_customers=trusts)
        assert (finding.subject, finding.level) == (f"guard {name}", level)
        assert finding.next_step


def test_accounting_that_is_down_counts_for_a_site() -> None:
    facts = facts_of(TABLE)
    del facts["accounting_private"]
    assert not missing_guards(facts, TABLE)


def test_accepted_gaps_are_guards_by_name() -> None:
    assert check_gaps(["contain"]) == ("contain",)
    assert len(NAMES) == len(set(NAMES)) == len(GUARDS)
    with pytest.raises(ConfigurationError, match="do not exist: containment"):
        check_gaps(["containment"])


async def test_what_slurm_prints_as_null_is_not_set(box: Box, login: Login) -> None:
    assert re.search(r"^PrologFlags *= \(null\)$", box.slurm("scontrol", "show", "config"), re.MULTILINE)
    facts = await ask_guards(login, box.settings)
    gaps = {guard.name: gap for guard, gap in missing_guards(facts, box.settings).items()}
    assert gaps["contain"].startswith("PrologFlags is not set: ")
    assert "(null)" not in "".join(facts.values())


@pytest.mark.skipif(os.getuid() != 0, reason="accounts are made by root")
async def test_a_real_site_for_root(box: Box, login: Login) -> None:
    """This cluster shows the jobs of all users, and its machine has no cgroups and no firewall."""
    with account() as alice:
        table = replace(box.settings, job_account=None, accounts=CustomerAccounts({ALICE: alice}))
        with hook_for(box, table):
            found = missing_guards(await ask_guards(login, table), table)
            assert {guard.name for guard in found} == NOT_HERE | {"private_data"}
            gate = Gate(login, table, (*NOT_HERE, "private_data"), trust_customers=False)
            assert await gate.why_closed() == ""
            assert "(private_data)" in await Gate(login, table, tuple(NOT_HERE), trust_customers=False).why_closed()
        found = missing_guards(await ask_guards(login, table), table)
        assert "submit_hook" in {guard.name for guard in found}, "the hook does not know the accounts"
    assert await Gate(login, box.settings, (), trust_customers=True).why_closed() == ""


@pytest.mark.long  # starts a second sshd
@pytest.mark.skipif(os.getuid() != 0, reason="accounts are made by root")
async def test_a_real_site_by_sudo(box: Box, state_folder: Path) -> None:
    with account() as alice:
        accounts = CustomerAccounts({ALICE: alice})
        for wrapper in (True, False):
            folder = Path(tempfile.mkdtemp(dir=state_folder))
            folder.chmod(0o755)
            with ordinary_supervisor(box, folder, accounts, wrapper=wrapper) as settings:
                login = Login(settings)
                try:
                    found = missing_guards(await ask_guards(login, settings), settings)
                finally:
                    await login.close()
            names = {guard.name for guard in found} - NOT_HERE
            assert names == ({"private_data"} if wrapper else {"private_data", "submission"})


@pytest.mark.long  # Slurm's commands retry for a while
async def test_a_cluster_that_does_not_answer_is_an_error(box: Box, login: Login, stop: Callable[[str], None]) -> None:
    stop("slurmctld")
    gate = Gate(login, box.settings, NAMES, trust_customers=False)
    with pytest.raises(SlurmUnreachable):
        await gate.why_closed()


async def test_the_gate_asks_again_when_its_answer_is_old(box: Box, login: Login) -> None:
    gate = Gate(login, box.settings, (), trust_customers=False, closed_fresh_s=600)
    said = await gate.why_closed()
    assert "accounts" in said and "dps provider doctor" in said
    await login.close()
    assert await gate.why_closed() == said, "cached"
