"""Unix accounts of the one-machine grid: one for its own jobs, and one per customer and cluster.

A customer's account belongs to one cluster, because each cluster kills processes that its jobs leave behind. It does
not know whether the account has jobs on the other cluster. All accounts are expired: logins, cron and at are refused.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import time
from pathlib import Path

from deepgrid.errors import ConfigurationError
from deepgrid.slurm.ssh.login_settings import CustomerAccounts
from deployments.onemachine.slurm.node_programs import closed_folders

JOB_ACCOUNT = "deepgrid-job"
DIGITS = 20  # of the wallet's 40 digits, because names have at most 32 characters
UIDS = {"MIN": 20000, "MAX": 59999}  # far from the ids of people and of Debian's services
LOCKED_FOR_AT_MOST_S = 30.0
POLL_S = 0.2
TRUSTS = (
    "This grid trusts its customers: a job can read, cancel and forge the jobs of others, and act as its supervisor."
)


def choose_job_account(state: Path) -> tuple[str | None, str]:
    """Return the account of jobs (None: our own), and a note for the user when jobs are not isolated.

    A missing account is created. This needs root, and a state folder that other accounts may enter.
    """
    if os.getuid() != 0:
        return None, f"Not root: the supervisors and all jobs share one Unix account. {TRUSTS}"
    if closed := closed_folders(state):
        why = f"{closed[-1]} is closed to others: the supervisors and all jobs share one Unix account."
        return None, f"{why} {TRUSTS} Set DEEPGRID_STATE to a folder that other accounts may enter."
    try:
        make_account(JOB_ACCOUNT)
    except ConfigurationError as error:
        return None, f"{error.message} The supervisors and all jobs share one Unix account. {TRUSTS}"
    return JOB_ACCOUNT, ""


def prefix(cluster: str) -> str:
    """Return prefix of the names of a cluster's customer accounts. The digits of the wallet follow."""
    return f"dg-{cluster}-"


def pattern(cluster: str) -> str:
    """Return pattern of a cluster's customer accounts, for `account_pattern` of a SlurmLogin block."""
    return f"{prefix(cluster)}{{digits:{DIGITS}}}"


def admit(cluster: str, address: str, book: Path) -> str:
    """Return the customer's account on the cluster, by wallet address. A missing account is created, and recorded in
    `book`.

    Raises ConfigurationError for a malformed address, or when the account cannot be created.
    """
    name = CustomerAccounts(pattern=pattern(cluster)).of(address)
    if name is None:
        raise ConfigurationError(f"{address[:80]!r} is not a wallet address.")
    make_account(name)
    if name not in recorded_accounts(book):
        with open(book, "a") as file:
            file.write(f"{name}\n")
    return name


def recorded_accounts(book: Path) -> list[str]:
    """Return the accounts in `book`."""
    return book.read_text().split() if book.exists() else []


def make_account(name: str) -> None:
    """Create an expired account without password and home, unless it exists. Raises ConfigurationError."""
    if not exists(name):
        command = ["useradd", "--system", "--user-group", "--no-create-home", "--home-dir=/nonexistent"]
        ranges = [f"--key=SYS_{kind}_{end}={uid}" for kind in ("UID", "GID") for end, uid in UIDS.items()]
        _change(name, [*command, "--shell=/bin/bash", *ranges, "--", name])
    _change(name, ["chage", "--expiredate", "1", "--", name])  # useradd does not expire a system account


def _change(name: str, command: list[str]) -> None:
    """Run a command that changes the account databases. Commands of all grids on this machine run one at a time."""
    deadline = time.monotonic() + LOCKED_FOR_AT_MOST_S
    while (done := subprocess.run(command, check=False, capture_output=True, text=True)).returncode:
        if command[0] == "useradd" and exists(name):  # another grid has created it
            return
        if "lock" not in done.stderr or time.monotonic() > deadline:
            raise ConfigurationError(f"The account {name} could not be created ({done.stderr.strip()}).")
        time.sleep(POLL_S)


def exists(name: str) -> bool:
    """Return whether this machine has the account."""
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
