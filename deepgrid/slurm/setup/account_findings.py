"""What doctor says about the Unix accounts of jobs: who they are, and whether the login can submit for them.

`examine_accounts` queries the login node with one command, `judge_accounts` is pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from deepgrid.errors import GridError
from deepgrid.findings import Finding, Level
from deepgrid.slurm.ssh.login import Runner
from deepgrid.slurm.ssh.login_settings import Become, LoginSettings, as_expression
from deepgrid.slurm.ssh.scripts import call, read_script, whole_answer

MAX_LISTED_NAMES = 5

_ACCOUNT_CHECKS = read_script("config.sh", "account_checks.sh")


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
    done = await login.run(command, stdin="".join(f"{name}\n" for name in configured_accounts(settings)).encode())
    values, accounts = {}, {}
    for line in whole_answer(done):
        match line.split(" "):
            case ["account", name, uid, sudo, group]:
                accounts[name] = Known(int(uid), None if sudo == "-" else sudo == "yes", group == "shared")
            case [name, *words]:
                values[name] = " ".join(words).strip()
    return AccountFacts(values, accounts)


def configured_accounts(settings: LoginSettings) -> list[str]:
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
    missing = [name for name in configured_accounts(settings) if name not in facts.accounts]
    if missing:
        words = f"The login node has no account {_list_names(missing)}: their jobs are refused."
        yield Finding("accounts", Level.BAD, words, "Create it there and on the nodes, or fix the login block.")
    roots = [name for name, known in facts.accounts.items() if known.uid == 0]
    if roots:
        words = f"{_list_names(roots)} is root: such jobs are refused."
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
        words = f"{login} cannot become {_list_names(refused)} by sudo without a password: their jobs are refused."
        yield Finding("become", Level.BAD, words, f"Add to sudoers: {rule}")
    elif foreign:
        yield Finding("become", Level.GOOD, f"{login} can become the accounts of jobs by sudo.")
    shared = [name for name in foreign if facts.accounts[name].in_our_group]
    if shared:
        words = f"{_list_names(shared)} is in {login}'s group, which may read every job's output and add files to it."
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


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    return ", ".join(names[:MAX_LISTED_NAMES]) + more
