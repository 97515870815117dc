"""Plans the changes by which a site's Slurm records the ends of jobs and guards their names. Pure: facts in, plan out.

The plan never overwrites the site's own completion plugin or Lua files. It lists what the administrator has to add by
hand instead.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import unified_diff

from deepgrid.slurm.setup.hook_text import Identities, completion_hook, submit_hook, submit_wrapper
from deepgrid.slurm.ssh.login_settings import Become, LoginSettings

HOOK_HEADERS = ("-- Completion hook (JobComp", "-- Identity hook (JobSubmit")
COMPLETION_PLUGIN = "jobcomp/lua"
_SUDOERS_FILE = "deepgrid-sbatch"
UNSET = ("", "none", "jobcomp/none")


@dataclass(frozen=True, slots=True)
class Site:
    """The present state of a site: facts by name, and texts of files by name (slurm.conf, the hooks, the wrapper)."""

    facts: Mapping[str, str]
    files: Mapping[str, str]
    login: LoginSettings

    @property
    def spool(self) -> str:
        return f"{self.login.grid_root}/spool"

    @property
    def who(self) -> Identities:
        return Identities(self.facts["account"], int(self.facts["uid"]), int(self.facts["slurm_uid"]))

    def path(self, name: str) -> str:
        """Return the path for a file of this name."""
        return self.facts["conf"] if name == "slurm.conf" else f"{self.facts['folder']}/{name}"

    @property
    def writable(self) -> bool:
        """Whether the login account may change slurm.conf and its folder."""
        return self.facts.get("writable") == "yes"


@dataclass(frozen=True, slots=True)
class FileChange:
    """The text of a file before (None: the file does not exist) and after the change."""

    path: str
    before: str | None
    after: str
    mode: int = 0o644

    def diff(self) -> str:
        old, new = (self.before or "").splitlines(keepends=True), self.after.splitlines(keepends=True)
        return "".join(unified_diff(old, new, "/dev/null" if self.before is None else self.path, self.path))


@dataclass(slots=True)
class Plan:
    """The steps, in this order: the spool folder, files (slurm.conf last), then a restart of slurmctld.

    `wrapper` is the submission wrapper, which only root can install. `by_hand` lists what only an administrator can
    decide. `lines` are the lines that slurm.conf must contain afterwards.
    """

    owner: str = ""  # of the spool folder; empty if it is already correct
    spool_mode: int = 0o700
    files: list[FileChange] = field(default_factory=list)
    wrapper: FileChange | None = None
    lines: list[str] = field(default_factory=list)
    restart: bool = False
    by_hand: list[str] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do, neither by this program nor by hand."""
        return not (self.owner or self.files or self.wrapper or self.restart or self.by_hand)

    def as_script(self, site: Site) -> str:
        """Return the plan as a shell script for root on the controller. At its end it lists the manual steps."""
        lines = ["#!/bin/sh", "# deepgrid: records of ended jobs, and protection of the names of jobs.", "set -eu"]
        if self.owner:
            lines += [f"mkdir -p {site.spool}", f"chown {self.owner} {site.spool}"]
            lines.append(f"chmod {self.spool_mode:o} {site.spool}")
        for change in self.files:
            if change.path != site.path("slurm.conf"):
                lines += _writing(change)
        if self.wrapper:
            may_run = f"{site.facts['account']} ALL=(root) NOPASSWD: {site.login.submit_wrapper}\n"
            rule = FileChange(f"/etc/sudoers.d/{_SUDOERS_FILE}", None, may_run, 0o440)
            lines += [*_writing(self.wrapper), f"chown root:root {self.wrapper.path}", *_writing(rule)]
        told = [*self.by_hand, f"BY HAND: {site.path('slurm.conf')} must contain these lines. Then restart slurmctld."]
        lines += [f"echo {shlex.quote(line)}" for line in (*told, *(f"  {line}" for line in self.lines))]
        return "\n".join(lines)


def plan(site: Site) -> Plan:
    """Return the plan for a site. It is empty if everything is installed."""
    made = Plan()
    _plan_spool(site, made)
    _plan_wrapper(site, made)
    wanted = _completion(site, made) | _submission(site, made)
    conf = site.files.get("slurm.conf", "")
    after = conf
    for name, value in wanted.items():
        made.lines.append(f"{name}={value}")
        if option(after, name) != value:
            after = with_option(after, name, value)
        if site.facts.get(f"now {name}", "") != value:
            made.restart = True
    if after != conf:
        made.files.append(FileChange(site.path("slurm.conf"), conf, after))
    return made


def hook(site: Site, name: str) -> str:
    """Return the text of one of our hooks for this site."""
    return submit_hook(site.login, site.who) if name == "job_submit.lua" else completion_hook(site.spool)


def option(conf: str, name: str) -> str:
    """Return the value of an option in the text of slurm.conf; empty if it is missing. The last occurrence counts."""
    found = re.findall(rf"^[ \t]*{name}[ \t]*=[ \t]*([^\s#]*)", conf, re.MULTILINE | re.IGNORECASE)
    return str(found[-1]) if found else ""


def with_option(conf: str, name: str, value: str) -> str:
    """Return the text of slurm.conf with the option set: replaced where it exists, otherwise added at the end."""
    line = f"{name}={value}"
    present = rf"^[ \t]*{name}[ \t]*=[^\n]*"
    if re.search(present, conf, re.MULTILINE | re.IGNORECASE):
        return re.sub(present, lambda _: line, conf, flags=re.MULTILINE | re.IGNORECASE)
    return f"{conf}{'' if conf.endswith(chr(10)) or not conf else chr(10)}{line}\n"


def _plan_spool(site: Site, made: Plan) -> None:
    """The supervisor must own the spool folder, and slurmctld must be able to write to it."""
    account, slurm_user = site.facts["account"], site.facts.get("slurm_user", "")
    alone = slurm_user in ("", "root", account)
    made.spool_mode = 0o700 if alone else 0o770
    group = "" if alone else site.facts.get("slurm_group", "")
    owner, _, mode = site.facts.get("spool", "").partition(" ")
    right_owner = owner.startswith(f"{account}:") and (alone or owner == f"{account}:{group}")
    if not right_owner or int(mode or "0", 8) != made.spool_mode:
        made.owner = f"{account}:{group}"


def _plan_wrapper(site: Site, made: Plan) -> None:
    """Install the submission wrapper if the login block names one."""
    path = site.login.submit_wrapper
    if not path or site.login.become is not Become.SUDO:
        return
    text = submit_wrapper(site.login, site.facts["account"], site.facts["named"])
    if site.files.get("wrapper") != text or site.facts.get("wrapper") != "root 755":
        made.wrapper = FileChange(path, site.files.get("wrapper"), text, 0o755)


def _completion(site: Site, made: Plan) -> dict[str, str]:
    """Return options for the completion hook; none if the site has another plugin or its own file."""
    present = _present(site, "JobCompType")
    if present not in (*UNSET, COMPLETION_PLUGIN):
        made.by_hand.append(
            f"This cluster has JobCompType={present}, and Slurm allows only one: it is kept, and accounting reports"
            " ends. If you do not need it, set JobCompType=jobcomp/none and run this again."
        )
        return {}
    return {"JobCompType": COMPLETION_PLUGIN} if _plan_file(site, "jobcomp.lua", made) else {}


def _submission(site: Site, made: Plan) -> dict[str, str]:
    """Return options for the hook that guards names and comments, in addition to the site's own plugins."""
    present = _present(site, "JobSubmitPlugins")
    plugins = [] if present in UNSET else present.split(",")
    if not _plan_file(site, "job_submit.lua", made):
        return {}
    return {"JobSubmitPlugins": ",".join(plugins if "lua" in plugins else [*plugins, "lua"])}


def _present(site: Site, name: str) -> str:
    """Return the value of an option: from slurm.conf, or from slurmctld because slurm.conf may include files."""
    return option(site.files.get("slurm.conf", ""), name) or site.facts.get(f"now {name}", "")


def _plan_file(site: Site, name: str, made: Plan) -> bool:
    """Plan to write our file, or to update it. Returns False if the present file is not ours."""
    present, text = site.files.get(name), hook(site, name)
    if present is not None and not present.startswith(HOOK_HEADERS):
        made.by_hand.append(
            f"{site.path(name)} is the site's own and is kept: add to it what deepgrid/slurm/remote/hooks/{name} does."
        )
        return False
    if present is not None and _settings(present) not in ([], _settings(text)):
        made.by_hand.append(
            f"{site.path(name)} serves another supervisor ({', '.join(_settings(present))}) and is kept: a cluster can"
            " have only one. If that supervisor is gone, remove the file and run this again."
        )
        return False
    if present != text:
        made.files.append(FileChange(site.path(name), present, text))
        made.restart = True
    return True


def _settings(text: str) -> list[str]:
    """Return the lines of a hook that differ between supervisors. Earlier hooks had no number if jobs came by sudo."""
    return re.findall(r"^local (?:SPOOL|SUPERVISOR) = (?!nil).*$", text, re.MULTILINE)


def _writing(change: FileChange) -> list[str]:
    lines = [f"cat > {change.path} <<'END_OF_FILE'", change.after.rstrip("\n"), "END_OF_FILE"]
    return [*lines, f"chmod {change.mode:o} {change.path}"]
