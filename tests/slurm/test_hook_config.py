"""The plan of `dps provider install-hooks` for many kinds of sites. It never overwrites a site's own files."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from deepgrid.slurm.setup.hook_config import Plan, Site, hook, option, plan, with_option
from deepgrid.slurm.setup.hook_text import Identities, submit_hook, version_of
from deepgrid.slurm.ssh.login_settings import Become, CustomerAccounts, LoginSettings

LOGIN = LoginSettings("host", 22, "grid", Path("key"), Path("known"), "/srv/grid")
BARE = Site(
    {
        "named": "/etc/slurm/slurm.conf", "conf": "/etc/slurm/slurm.conf", "folder": "/etc/slurm", "account": "grid",
        "uid": "990",
        "slurm_uid": "64030",
        "slurm_user": "slurm", "slurm_group": "slurm", "writable": "yes", "spool": "grid:slurm 770",
        "now JobCompType": "jobcomp/none", "now JobSubmitPlugins": "",
    },
    {"slurm.conf": "ClusterName=c\nNodeName=n1\n"},
    LOGIN,
)  # fmt: skip


def with_files(site: Site = BARE, **texts: str) -> Site:
    return replace(site, files={**site.files, **{name.replace("_lua", ".lua"): text for name, text in texts.items()}})


def with_conf(lines: str, **now: str) -> Site:
    facts = {**BARE.facts, **{f"now {name}": value for name, value in now.items()}}
    return Site(facts, {"slurm.conf": f"ClusterName=c\n{lines}\n"}, BARE.login)


def after(site: Site, made: Plan, *, restarted: bool = True) -> Site:
    """Return the site as the plan leaves it."""
    names = {site.path(name): name for name in ("slurm.conf", "jobcomp.lua", "job_submit.lua")}
    facts = dict(site.facts)
    if restarted:
        facts |= {f"now {line.split('=')[0]}": line.split("=", 1)[1] for line in made.lines}
    files = {**site.files, **{names[change.path]: change.after for change in made.files}}
    return Site(facts, files, site.login)


def test_a_bare_site_gets_everything_once() -> None:
    made = plan(BARE)
    assert [change.path.rsplit("/", 1)[1] for change in made.files] == ["jobcomp.lua", "job_submit.lua", "slurm.conf"]
    conf = made.files[-1].after
    assert conf.startswith("ClusterName=c\nNodeName=n1\n")
    assert (option(conf, "JobCompType"), option(conf, "JobSubmitPlugins")) == ("jobcomp/lua", "lua")
    assert made.restart and not made.by_hand and not made.owner
    assert "+JobCompType=jobcomp/lua" in made.files[-1].diff()
    waits = plan(after(BARE, made, restarted=False))
    assert waits.restart and not waits.files, "slurmctld was not restarted yet"
    assert plan(after(BARE, made)).empty


def test_options_are_replaced_in_place() -> None:
    conf = "# JobCompType=jobcomp/mysql\njobcomptype = jobcomp/none # none\nX=1"
    assert option(conf, "JobCompType") == "jobcomp/none"
    assert with_option(conf, "JobCompType", "jobcomp/lua").splitlines()[1:] == ["JobCompType=jobcomp/lua", "X=1"]
    assert with_option("X=1", "JobCompType", "jobcomp/lua") == "X=1\nJobCompType=jobcomp/lua\n"


def test_another_completion_plugin_is_kept() -> None:
    site = with_conf("JobCompType=jobcomp/elasticsearch")
    made = plan(site)
    assert "JobCompType=jobcomp/elasticsearch" in made.by_hand[0]
    assert [change.path for change in made.files] == ["/etc/slurm/job_submit.lua", "/etc/slurm/slurm.conf"]
    assert option(made.files[-1].after, "JobCompType") == "jobcomp/elasticsearch"
    included = with_conf("Include /etc/slurm/more.conf", JobCompType="jobcomp/filetxt")
    assert "jobcomp/filetxt" in plan(included).by_hand[0]


def test_lua_files_of_the_sites_own_are_kept() -> None:
    made = plan(with_files(jobcomp_lua="-- ours\n", job_submit_lua="-- ours too\n"))
    assert not made.files and not made.lines and len(made.by_hand) == 2
    assert all("is the site's own and is kept" in sentence for sentence in made.by_hand)


def test_hooks_of_another_supervisor_are_kept() -> None:
    other = replace(BARE, login=replace(LOGIN, grid_root="/srv/other"), facts={**BARE.facts, "uid": "1234"})
    site = with_files(jobcomp_lua=hook(other, "jobcomp.lua"), job_submit_lua=hook(other, "job_submit.lua"))
    made = plan(site)
    assert not made.files
    assert "/srv/other/spool" in made.by_hand[0] and "1234" in made.by_hand[1]


def test_an_older_hook_of_ours_is_replaced() -> None:
    older = hook(BARE, "jobcomp.lua").replace("os.remove(temporary)", "")
    made = plan(with_files(jobcomp_lua=older))
    assert made.files[0].before == older and made.files[0].after == hook(BARE, "jobcomp.lua")


def test_other_submit_plugins_stay_active() -> None:
    made = plan(with_conf("JobSubmitPlugins=throttle"))
    assert option(made.files[-1].after, "JobSubmitPlugins") == "throttle,lua"


@pytest.mark.parametrize(
    ("slurm_user", "spool", "owner", "mode"),
    [
        ("slurm", "", "grid:slurm", 0o770),
        ("slurm", "grid:grid 700", "grid:slurm", 0o770),
        ("slurm", "grid:slurm 770", "", 0o770),
        ("root", "", "grid:", 0o700),
        ("grid", "grid:grid 700", "", 0o700),
        ("root", "root:root 700", "grid:", 0o700),
    ],
)
def test_the_spool_is_the_supervisors_and_slurmctld_may_write(
    slurm_user: str, spool: str, owner: str, mode: int
) -> None:
    made = plan(replace(BARE, facts={**BARE.facts, "slurm_user": slurm_user, "spool": spool}))
    assert (made.owner, made.spool_mode) == (owner, mode)


def test_the_script_for_administrators_is_a_shell_script(tmp_path: Path) -> None:
    site = replace(BARE, facts={**BARE.facts, "spool": ""})
    text = plan(site).as_script(site)
    (tmp_path / "hooks.sh").write_text(text)
    assert subprocess.run(["sh", "-n", str(tmp_path / "hooks.sh")], check=False).returncode == 0
    for words in ("chown grid:slurm /srv/grid/spool", 'local SPOOL = "/srv/grid/spool"'):
        assert words in text
    told = "\n".join(line for line in text.splitlines() if line.startswith("echo "))
    said = subprocess.run(["sh", "-c", told], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[-3:] == [
        f"BY HAND: {site.path('slurm.conf')} must contain these lines. Then restart slurmctld.",
        "  JobCompType=jobcomp/lua", "  JobSubmitPlugins=lua",
    ]  # fmt: skip


CUSTOMER = "0x" + "a" * 40
SUDO = replace(LOGIN, become=Become.SUDO, accounts=CustomerAccounts({CUSTOMER: "alice"}), own_account="bench")
WRAPPED = replace(SUDO, submit_wrapper="/usr/local/sbin/deepgrid-sbatch")


def test_customers_submit_only_by_sudo_without_the_wrapper() -> None:
    may = "local CUSTOMERS_MAY_SUBMIT = true\n"
    assert may in hook(replace(BARE, login=SUDO), "job_submit.lua")
    assert may not in hook(replace(BARE, login=WRAPPED), "job_submit.lua")
    assert may not in hook(BARE, "job_submit.lua")


def test_the_wrapper_is_installed_by_root_only_and_once() -> None:
    site = replace(BARE, login=WRAPPED)
    made = plan(site)
    assert made.wrapper is not None
    assert (made.wrapper.path, made.wrapper.mode) == (WRAPPED.submit_wrapper, 0o755)
    assert "accounts=' alice bench '" in made.wrapper.after
    text = made.as_script(site)
    assert "grid ALL=(root) NOPASSWD: /usr/local/sbin/deepgrid-sbatch\n" in text
    assert f"chown root:root {WRAPPED.submit_wrapper}" in text
    files, facts = {**site.files, "wrapper": made.wrapper.after}, {**site.facts, "wrapper": "root 755"}
    assert plan(replace(site, files=files, facts=facts)).wrapper is None
    assert plan(replace(site, files=files, facts={**facts, "wrapper": "grid 755"})).wrapper is not None


def test_an_older_hook_without_a_supervisor_is_replaced() -> None:
    older = re.sub("local SUPERVISOR = .*", "local SUPERVISOR = nil", hook(BARE, "job_submit.lua"))
    made = plan(with_files(job_submit_lua=older))
    assert not made.by_hand
    assert "local SUPERVISOR = 990\n" in made.files[1].after


def test_the_hook_knows_the_accounts_of_customers_by_name_and_pattern() -> None:
    who = Identities("grid", 990, 64030)
    accounts = CustomerAccounts({CUSTOMER: "alice", "0x" + "b" * 40: "grid"}, "d-s.{digits:24}@x")
    text = submit_hook(replace(LOGIN, accounts=accounts, job_account="others"), who)
    assert 'local CUSTOMERS = { ["alice"] = true, ["others"] = true }' in text, "not the supervisor's own"
    assert f'local PATTERN = "^d%-s%.{"[0-9a-f]" * 24}%@x$"' in text
    assert version_of(text) and version_of(text) != version_of(submit_hook(LOGIN, who))
