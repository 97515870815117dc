"""Checks a cluster's set-up and the Unix accounts of jobs for `dps provider doctor`.

`examine` and `examine_accounts` query the login node with one command each, `judge` and `judge_accounts` are pure. Each
finding is one sentence about one subject. A finding that is not good also says what to do.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deepgrid.errors import GridError
from deepgrid.findings import Finding, Level
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.setup.hook_text import completion_hook, version_of
from deepgrid.slurm.setup.partition_findings import judge_partition, judge_programs, judge_speed
from deepgrid.slurm.ssh.login import Runner
from deepgrid.slurm.ssh.login_settings import Become, LoginSettings, as_expression
from deepgrid.slurm.ssh.scripts import call, read_script, whole_answer

MAX_CLOCK_SKEW_S = 5.0
LOW_DISK_MIB, FULL_DISK_MIB = 1024, 64
COMPLETION_PLUGIN = "jobcomp/lua"
MAX_LISTED_NAMES = 5

_CHECKUP = read_script("config.sh", "checkup.sh")
_ACCOUNT_CHECKS = read_script("config.sh", "account_checks.sh")


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about the login node by name, and the difference of its clock to ours (s, positive if it is ahead)."""

    values: Mapping[str, str]
    clock_ahead_s: float


async def examine(login: Runner, cluster: Cluster) -> list[Finding]:
    """Return all findings on a cluster; a single one if it is unreachable."""
    try:
        facts = await ask(login, cluster.settings)
    except GridError as error:
        return [Finding.of("login", error)]
    findings = [Finding("login", Level.GOOD, f"{cluster.settings.host} answers as {facts.values['account']}.")]
    try:
        await cluster.health()
        found = await cluster.partition()
    except GridError as error:
        if not (missing := list(judge_programs(facts.values))):  # one cause has one finding
            findings.append(Finding.of("slurm", error))
        findings += missing
    else:
        findings += judge_partition(found, cluster.settings.partition, facts.values.get("SLURM_VERSION", ""))
        findings += judge_programs(facts.values)
        findings += judge_speed(facts.values, cluster.settings.slurm_timeout_s)
    return [*findings, *judge(facts, cluster.settings)]


async def ask(login: Runner, settings: LoginSettings) -> Facts:
    """Query the facts. Raises SlurmUnreachable when the answer was cut off, and what `Runner.run` raises."""
    before = time.time()
    values = _values(whole_answer(await login.run(call(_CHECKUP, settings.grid_root))))
    after, clock = time.time(), float(values["clock"])
    # The clock was read between `before` and `after`; the login may take most of that time.
    return Facts(values, max(0.0, clock - after) or min(0.0, clock - before))


def judge(facts: Facts, settings: LoginSettings) -> list[Finding]:
    """Turn the facts into findings."""
    return [
        _clock(facts.clock_ahead_s),
        *_folders(facts.values, settings),
        _disk(facts.values, settings),
        _locks(facts.values, settings),
        _ends(facts.values, settings),
    ]


def _values(lines: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(" ")
        if name in ("folder", "hook"):
            about, _, value = value.partition(" ")
            name = f"{name} {about}"
        values[name] = value.strip()
    return values


def _clock(ahead_s: float) -> Finding:
    away = f"{abs(ahead_s):.0f} s {'ahead of' if ahead_s > 0 else 'behind'} this machine's"
    if abs(ahead_s) <= MAX_CLOCK_SKEW_S:
        return Finding("clock", Level.GOOD, "The login node's clock agrees with this machine's.")
    return Finding("clock", Level.WARNING, f"The login node's clock is {away}.", "Run an NTP client on both.")


def _folders(values: Mapping[str, str], settings: LoginSettings) -> Iterator[Finding]:
    for name in ("", "jobs"):
        state = values.get(f"folder {'/' + name if name else '/'}", "missing")
        path = f"{settings.grid_root}/{name}".rstrip("/")
        if state == "writable" or (name and state == "missing"):  # the first job makes the folder
            continue
        step = f"Create it for {values['account']}, on a file system shared with the nodes."
        yield Finding("folder", Level.BAD, f"{path} is {state} for {values['account']}.", step)


def _disk(values: Mapping[str, str], settings: LoginSettings) -> Finding:
    free = int(values.get("free_mib") or 0)
    words = f"{free} MiB are free for {settings.grid_root} ({values.get('filesystem') or 'unknown file system'})."
    if free < FULL_DISK_MIB:
        return Finding("disk", Level.BAD, words, "Make room: jobs cannot be submitted, ends cannot be recorded.")
    return Finding("disk", Level.WARNING if free < LOW_DISK_MIB else Level.GOOD, words)


def _locks(values: Mapping[str, str], settings: LoginSettings) -> Finding:
    if values.get("locks") == "yes":
        return Finding("locks", Level.GOOD, f"flock works on {settings.grid_root}.")
    words = f"flock does not work on {settings.grid_root}: a job could be submitted twice."
    step = "Mount the file system with locks (NFS: version 4, or without nolock), or choose another folder."
    return Finding("locks", Level.BAD, words, step)


def _ends(values: Mapping[str, str], settings: LoginSettings) -> Finding:
    """Return where the supervisor learns that jobs ended, and which ends it could miss."""
    spool = f"{settings.grid_root}/spool"
    accounting = values.get("AccountingStorageType", "") == "accounting_storage/slurmdbd"
    if values.get("JobCompType") == COMPLETION_PLUGIN and values.get("hook SPOOL") == spool:
        if values.get("hook VERSION") != version_of(completion_hook(spool)):
            words = "The completion hook is of another version of deepgrid, which may lose ends that this one records."
            return Finding("ends", Level.BAD, words, "Renew it: dps provider install-hooks CLUSTER --yes.")
        if values.get("folder /spool") == "writable":
            words = "The completion hook records all ends, also while the supervisor is down."
            return Finding("ends", Level.GOOD, words)
        words = f"The completion hook writes into {spool}, which {values['account']} cannot empty."
        step = f"Make {values['account']} the owner of the folder, and let SlurmUser write to it."
        return Finding("ends", Level.BAD, words, step)
    hook = f"Install the completion hook, which writes into {spool}: dps provider install-hooks."
    if accounting:
        words = "Ends come from Slurm's accounting. Ends that it purges while the supervisor is down are lost."
        return Finding("ends", Level.WARNING, words, hook)
    kept = values.get("MinJobAge") or "a few minutes"
    words = f"Ends come only from the queue. A job that ends while the supervisor is down for {kept} earns nothing."
    return Finding("ends", Level.WARNING, words, hook)


@dataclass(frozen=True, slots=True)
class Known:
    """An account of the login node. `by_sudo` says whether sudo works for it; None if sudo is not needed."""

    uid: int
    by_sudo: bool | None = None
    in_our_group: bool = False


@dataclass(frozen=True, slots=True)
class AccountFacts:
    """Facts about the login node by name, and about the accounts that exist there."""

    values: Mapping[str, str]
    accounts: Mapping[str, Known]


async def examine_accounts(login: Runner, settings: LoginSettings) -> list[Finding]:
    """Return all findings on accounts; a single one if the login node does not answer."""
    try:
        return judge_accounts(await ask_accounts(login, settings), settings)
    except GridError as error:
        return [Finding.of("accounts", error)]


async def ask_accounts(login: Runner, settings: LoginSettings) -> AccountFacts:
    """Query the facts. Raises SlurmUnreachable when the answer was cut off, and what `Runner.run` raises."""
    pattern = as_expression(settings.accounts.pattern)
    command = call(_ACCOUNT_CHECKS, settings.become.value, pattern)
    done = await login.run(command, stdin="".join(f"{name}\n" for name in named(settings)).encode())
    values, accounts = {}, {}
    for line in whole_answer(done):
        match line.split(" "):
            case ["account", name, uid, sudo, group]:
                accounts[name] = Known(int(uid), None if sudo == "-" else sudo == "yes", group == "shared")
            case [name, *words]:
                values[name] = " ".join(words).strip()
    return AccountFacts(values, accounts)


def named(settings: LoginSettings) -> list[str]:
    """Return the accounts that the settings name, sorted and without duplicates."""
    others = (settings.job_account, settings.own_account)
    return sorted({*settings.accounts.table.values(), *(name for name in others if name)})


def judge_accounts(facts: AccountFacts, settings: LoginSettings) -> list[Finding]:
    """Turn the facts into findings."""
    faults = [*_missing(facts, settings), *_becoming(facts, settings), *_rights(facts)]
    if any(fault.subject == "accounts" for fault in faults):
        return faults
    return [_separation(facts, settings), *faults]


def _separation(facts: AccountFacts, settings: LoginSettings) -> Finding:
    """Return whether customers have separate accounts."""
    login, accounts, shared = facts.values["login"], settings.accounts, settings.job_account
    step = "Give each customer an account of its own in the Slurm login block (account_table, account_pattern)."
    if not accounts:
        account = f"the account {shared}" if shared and shared != login else "the supervisor's own account"
        words = f"All jobs run under {account}: they can read, cancel and forge each other."
        return Finding("accounts", Level.WARNING, words, step)
    if accounts.pattern:
        like = int(facts.values.get("like") or 0)
        words = f"Customers have accounts like {accounts.pattern}; the login node lists {like} of them."
        if like:
            return Finding("accounts", Level.GOOD, words)
        return Finding("accounts", Level.WARNING, words, "Create the accounts; a customer without one is refused.")
    words = f"{len(accounts.table)} customers have accounts of their own, all others "
    if shared:
        return Finding("accounts", Level.WARNING, f"{words}share {shared}.", step)
    return Finding("accounts", Level.GOOD, f"{words}are refused.")


def _missing(facts: AccountFacts, settings: LoginSettings) -> Iterator[Finding]:
    missing = [name for name in named(settings) if name not in facts.accounts]
    if missing:
        words = f"The login node has no account {_listed(missing)}: their jobs are refused."
        yield Finding("accounts", Level.BAD, words, "Create it there and on the nodes, or fix the login block.")
    roots = [name for name, known in facts.accounts.items() if known.uid == 0]
    if roots:
        words = f"{_listed(roots)} is root: such jobs are refused."
        yield Finding("accounts", Level.BAD, words, "Give these jobs an ordinary account.")


def _becoming(facts: AccountFacts, settings: LoginSettings) -> Iterator[Finding]:
    """Yield whether the login can submit jobs for the accounts."""
    login, uid = facts.values["login"], int(facts.values["uid"])
    foreign = [name for name, known in facts.accounts.items() if known.uid != uid]
    if settings.become is Become.UID:
        if uid and (foreign or settings.accounts):
            words = f"{login} is not root, so it cannot submit for other accounts by sbatch --uid."
            yield Finding("become", Level.BAD, words, "Log in as root, or set become to sudo in the Slurm login block.")
        return
    refused = [name for name in foreign if facts.accounts[name].by_sudo is False]
    if refused:
        rule = f"{login} ALL=({','.join(refused[:MAX_LISTED_NAMES])}) NOPASSWD: ALL"
        words = f"{login} cannot become {_listed(refused)} by sudo without a password: their jobs are refused."
        yield Finding("become", Level.BAD, words, f"Add to sudoers: {rule}")
    elif foreign:
        yield Finding("become", Level.GOOD, f"{login} can become the accounts of jobs by sudo.")
    shared = [name for name in foreign if facts.accounts[name].in_our_group]
    if shared:
        words = f"{_listed(shared)} is in {login}'s group, which may read every job's output and make files beside it."
        yield Finding("become", Level.BAD, words, f"Give {login} a group of its own.")


def _rights(facts: AccountFacts) -> Iterator[Finding]:
    """Yield whether Slurm lets the login see and change jobs of other accounts."""
    values = facts.values
    login, level = values["login"], values.get("level", "")
    if values["uid"] == "0" or login == values.get("slurm_user") or level in ("Operator", "Administrator"):
        return
    step = f"Run sacctmgr add user {login} account=root adminlevel=operator, or modify it."
    if "jobs" in values.get("private", "").split(","):
        yield Finding("rights", Level.BAD, f"Slurm hides the jobs of other accounts from {login} (PrivateData).", step)
    else:
        words = f"{login} is no operator of Slurm: a job that is topped up keeps its time limit."
        yield Finding("rights", Level.WARNING, words, step)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    return ", ".join(names[:MAX_LISTED_NAMES]) + more
