"""The guards that jobs of strangers need. Without them a customer could compute unpaid, or reach other customers.

`ask_guards` queries the login node with one command, `missing_guards` is pure. A provider can accept a missing guard by
its name (`accepted_gaps` of the provider block). A provider that trusts its customers needs no guard
(`trust_customers`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from deepgrid.errors import ConfigurationError, SlurmUnreachable
from deepgrid.findings import Finding, Level
from deepgrid.slurm.commands.complaints import is_outage
from deepgrid.slurm.setup.hook_text import PROBE, Identities, submit_hook, submit_wrapper, version_of
from deepgrid.slurm.ssh.login import Runner
from deepgrid.slurm.ssh.login_settings import Become, LoginSettings
from deepgrid.slurm.ssh.scripts import call, read_script, whole_answer

Facts = Mapping[str, str]
INSTALL = "Run dps provider install-hooks."
QUOTA_OPTIONS = {"usrquota", "usrjquota", "uquota", "quota", "prjquota", "pquota"}  # of mount, for ext4 and XFS

_GUARDS = read_script("config.sh", "guards.sh")


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard. `gap` returns what is wrong, empty if the guard is active. `next_step` says how to add it."""

    name: str
    gap: Callable[[Facts, LoginSettings], str]
    next_step: str


def _accounts(_: Facts, login: LoginSettings) -> str:
    if not login.accounts:
        return "All customers' jobs share one account: they can read, cancel and forge each other."
    if login.job_account:
        return f"Customers without an account of their own share {login.job_account}."
    names = list(login.accounts.table.values())
    return "Two customers of the table share an account." if len(set(names)) < len(names) else ""


def _submit_hook(facts: Facts, login: LoginSettings) -> str:
    who = Identities(facts["account"], int(facts["uid"]), int(facts["slurm_uid"] or 0))
    found = re.search(r"deepgrid hook ([0-9a-f]+)", facts["probe"])
    if found is None:
        return "slurmctld runs no submit hook of deepgrid: jobs can change themselves and submit other jobs unpaid."
    if found[1] != version_of(submit_hook(login, who)):
        return "The submit hook has another version, or does not know the accounts of this login block."
    return ""


def _submission(facts: Facts, login: LoginSettings) -> str:
    if login.become is Become.UID:
        return "" if facts["uid"] == "0" else "The supervisor's own account submits the jobs, so a job can submit too."
    if not login.submit_wrapper:
        return "Customers' accounts submit their jobs by sudo, so they can submit other jobs unpaid."
    expected = version_of(submit_wrapper(login, facts["account"], facts["conf"]))
    if facts.get("wrapper") == f"deepgrid-sbatch {expected}":
        return ""
    return f"{login.submit_wrapper} is not installed, has another version, or sudo does not let the supervisor run it."


def _setting(name: str, wanted: str, loss: str) -> Callable[[Facts, LoginSettings], str]:
    """Return a setting of slurm.conf whose list must contain the word `wanted`."""

    def gap(facts: Facts, _: LoginSettings) -> str:
        value = facts.get(name, "")
        words = {word.strip().casefold() for word in value.split(",")}
        return "" if wanted.casefold() in words else f"{name} is {value or 'not set'}: {loss}"

    return gap


def _without(name: str, barred: str, loss: str) -> Callable[[Facts, LoginSettings], str]:
    """Return a setting of slurm.conf whose list must not contain the word `barred`."""

    def gap(facts: Facts, _: LoginSettings) -> str:
        words = {word.strip().casefold() for word in facts.get(name, "").split(",")}
        return f"{name} contains {barred}: {loss}" if barred in words else ""

    return gap


def _private_data(facts: Facts, _: LoginSettings) -> str:
    for where, value in (("slurm.conf", facts.get("PrivateData")), ("slurmdbd.conf", facts.get("accounting_private"))):
        if value is not None and not {"jobs", "usage"} <= {word.strip() for word in value.casefold().split(",")}:
            return f"PrivateData of {where} is {value or 'not set'}: customers see each other's jobs."
    return ""


def _part_limits(facts: Facts, _: LoginSettings) -> str:
    value = facts.get("EnforcePartLimits", "")
    return f"EnforcePartLimits is {value or 'not set'}." if value.casefold() in ("", "no") else ""


def _connections(facts: Facts, _: LoginSettings) -> str:
    if facts.get("connection_limits", "0") != "0":
        return ""
    return "The login node sees no limit on connections to slurmctld: a job with many keeps Slurm from answering."


def _disk_quota(facts: Facts, login: LoginSettings) -> str:
    options = {option.partition("=")[0] for option in facts.get("mount_options", "").split(",")}
    if options & QUOTA_OPTIONS:
        return ""
    return f"{login.grid_root} has no quotas: one job can fill it, and then no job can be submitted."


GUARDS = (
    Guard("accounts", _accounts, "Give each customer an account: account_table or account_pattern, no job_account."),
    Guard("submit_hook", _submit_hook, INSTALL),
    Guard(
        "submission", _submission,
        "Let the supervisor log in as root, or set submit_wrapper in the Slurm login block and install it:"
        " dps provider install-hooks --print.",
    ),
    Guard(
        "proctrack", _setting("ProctrackType", "proctrack/cgroup", "daemons of a job outlive the job."),
        "Set ProctrackType=proctrack/cgroup in slurm.conf.",
    ),
    Guard(
        "task_plugin", _setting("TaskPlugin", "task/cgroup", "jobs use more CPUs and memory than they pay for."),
        "Set TaskPlugin=task/cgroup,task/affinity in slurm.conf, and ConstrainCores, ConstrainRAMSpace and"
        " ConstrainDevices=yes in cgroup.conf.",
    ),
    Guard(
        "contain", _setting("PrologFlags", "contain", "processes that start by SSH on a node belong to no job."),
        "Set PrologFlags=Contain in slurm.conf, and use pam_slurm_adopt on the nodes.",
    ),
    Guard(
        "private_data", _private_data,
        "Set PrivateData=accounts,events,jobs,reservations,usage,users in slurm.conf and slurmdbd.conf; a supervisor"
        " that is not root then needs Slurm's operator level.",
    ),
    Guard("part_limits", _part_limits, "Set EnforcePartLimits=ALL in slurm.conf."),
    Guard(
        "private_tmp",
        _setting("JobContainerType", "job_container/tmpfs", "jobs on a node share /tmp and /dev/shm."),
        "Set JobContainerType=job_container/tmpfs in slurm.conf, with job_container.conf; where another plugin makes"
        " /tmp private, add private_tmp to accepted_gaps.",
    ),
    Guard(
        "scrontab", _without("ScronParameters", "enable", "customers could schedule jobs."),
        "Take enable out of ScronParameters in slurm.conf.",
    ),
    Guard(
        "triggers",
        _without("SlurmctldParameters", "allow_user_triggers", "customers could run programs on the controller."),
        "Take allow_user_triggers out of SlurmctldParameters in slurm.conf.",
    ),
    Guard(
        "disk_quota", _disk_quota,
        "Mount it with usrquota or prjquota, and give each customer's account a limit below the free room. Where the"
        " server of a network file system limits accounts, add disk_quota to accepted_gaps.",
    ),
    Guard(
        "connections", _connections,
        "Limit them for each account by the firewall of every node (docs/how-to/provider.md, Connections to slurmctld)."
        " Where the login node is not a node, then add connections to accepted_gaps.",
    ),
)  # fmt: skip
NAMES = tuple(guard.name for guard in GUARDS)


def check_gaps(names: Collection[str]) -> tuple[str, ...]:
    """Return these names if all of them are guards. Raises ConfigurationError."""
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        raise ConfigurationError(
            f"accepted_gaps names guards that do not exist: {', '.join(unknown)}.",
            next_step=f"Use some of {', '.join(NAMES)}.",
        )
    return tuple(names)


async def ask_guards(login: Runner, settings: LoginSettings) -> Facts:
    """Query the facts. Raises SlurmUnreachable when Slurm does not answer, and what `Runner.run` raises."""
    wrapper = settings.submit_wrapper if settings.become is Become.SUDO else ""
    done = await login.run(call(_GUARDS, settings.partition, PROBE, wrapper, settings.grid_root))
    facts = {name: value.strip() for name, _, value in (line.partition(" ") for line in whole_answer(done))}
    if "silent" in facts or is_outage(facts["probe"]):
        raise SlurmUnreachable(f"Slurm does not answer: {facts.get('silent') or facts['probe']}.")
    return facts


def missing_guards(facts: Facts, settings: LoginSettings) -> dict[Guard, str]:
    """Return the guards that a cluster lacks, each with a sentence on its fault."""
    found = {guard: guard.gap(facts, settings) for guard in GUARDS}
    return {guard: gap for guard, gap in found.items() if gap}


def judge_guards(missing: Mapping[Guard, str], accepted: Collection[str], *, trust_customers: bool) -> list[Finding]:
    """Return a finding for each missing guard: BAD, unless it is accepted or customers are trusted."""
    if not missing:
        return [Finding("guards", Level.GOOD, f"All {len(GUARDS)} guards against customers' jobs are active.")]
    findings = []
    for guard, gap in missing.items():
        level, words, step = Level.BAD, gap, guard.next_step
        if trust_customers:
            level, words = Level.WARNING, f"{gap} (customers are trusted)"
        elif guard.name in accepted:
            level, words = Level.WARNING, f"{gap} (an accepted gap)"
            step = f"Take {guard.name} out of accepted_gaps when the cluster has the guard."
        findings.append(Finding(f"guard {guard.name}", level, words, step))
    return findings


class Gate:
    """Decides whether jobs of strangers may be claimed.

    The answer is cached for `fresh_s`, or for `closed_fresh_s` while a guard is missing.
    """

    def __init__(
        self,
        login: Runner,
        settings: LoginSettings,
        accepted: Sequence[str],
        *,
        trust_customers: bool,
        fresh_s: float = 300.0,
        closed_fresh_s: float = 30.0,
    ) -> None:
        self._login = login
        self._settings = settings
        self._accepted = frozenset(accepted)
        self._trusts = trust_customers
        self._fresh_s, self._closed_fresh_s = fresh_s, closed_fresh_s
        self._reason = ""
        self._query_at = 0.0

    async def why_closed(self) -> str:
        """Return the missing guards in one sentence; empty when jobs may be claimed.

        Raises SlurmUnreachable when this is unknown: then nothing may be claimed either.
        """
        if self._trusts:
            return ""
        if time.monotonic() >= self._query_at:
            missing = missing_guards(await ask_guards(self._login, self._settings), self._settings)
            names = [guard.name for guard in missing if guard.name not in self._accepted]
            self._reason = _why_closed(names) if names else ""
            self._query_at = time.monotonic() + (self._closed_fresh_s if names else self._fresh_s)
        return self._reason


def _why_closed(names: Sequence[str]) -> str:
    return (
        f"The cluster lacks guards that strangers' jobs need ({', '.join(names)}): see dps provider doctor, or set"
        " accepted_gaps or trust_customers in the provider block"
    )
