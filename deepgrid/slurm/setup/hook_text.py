"""The texts of the files that a site installs: the two Lua hooks and the submission wrapper. Pure.

Each file contains the settings of its site, and a version that changes with its text.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from deepgrid.slurm.ssh.login_settings import Become, LoginSettings, as_expression
from deepgrid.slurm.ssh.scripts import read_script

PROBE = "deepgrid-probe"  # the submit hook refuses a job of this name and answers with its version
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_VERSION_DIGITS = 16
_REPEATED = re.compile(r"\[0-9a-f\]\{(\d+)\}")


@dataclass(frozen=True, slots=True)
class Identities:
    """Accounts on the login node: the supervisor's name and user id, and the user id of SlurmUser."""

    account: str
    uid: int
    slurm_uid: int


def customer_names(login: LoginSettings, account: str) -> list[str]:
    """Return accounts of customers that the login block names, without the supervisor's own `account`."""
    named = {*login.accounts.table.values(), *filter(None, [login.job_account])}
    return sorted(named - {account})


def submit_hook(login: LoginSettings, who: Identities) -> str:
    """`job_submit.lua` for a cluster with this login block."""
    pattern = as_expression(login.accounts.pattern)
    may_submit = login.become is Become.SUDO and not login.submit_wrapper  # their own accounts submit by sudo
    values = {
        "SUPERVISOR": str(who.uid),
        "SLURM_USER": str(who.slurm_uid),
        "CUSTOMERS_MAY_SUBMIT": str(may_submit).lower(),
        "CUSTOMERS": ", ".join(f'["{name}"] = true' for name in customer_names(login, who.account)),
        "PATTERN": f'"{_as_lua(pattern)}"' if pattern else "nil",
    }
    return _with_version(_fill_in("hooks/job_submit.lua", values))


def completion_hook(spool: str) -> str:
    """`jobcomp.lua`, which writes its records to this folder."""
    return _with_version(_fill_in("hooks/jobcomp.lua", {"SPOOL": spool}))


def submit_wrapper(login: LoginSettings, account: str, slurm_conf: str) -> str:
    """`deepgrid-sbatch` for this login block. The supervisor's own jobs may use it too."""
    names = {*customer_names(login, account), *filter(None, [login.own_account])} - {account}
    values = {
        "ROOT": login.grid_root.rstrip("/"),
        "CONF": slurm_conf,
        "PATH": f"{login.slurm_path}:{SYSTEM_PATH}" if login.slurm_path else SYSTEM_PATH,
        "ACCOUNTS": " ".join(sorted(names)),
        "PATTERN": as_expression(login.accounts.pattern),
    }
    return _with_version(_fill_in("hooks/submit_wrapper.sh", values))


def version_of(text: str) -> str:
    """Return the version in the text of a hook or of the wrapper."""
    found = re.search(r"""(?:VERSION = "|version=')([0-9a-f]*)""", text)
    return found[1] if found else ""


def _fill_in(name: str, values: dict[str, str]) -> str:
    text = read_script(name)
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text


def _with_version(text: str) -> str:
    return text.replace("@VERSION@", hashlib.sha256(text.encode()).hexdigest()[:_VERSION_DIGITS])


def _as_lua(expression: str) -> str:
    """Convert an expression of `as_expression` to a Lua pattern, which has other special characters and no counts."""
    before, count, after = _REPEATED.split(expression)
    plain = [re.sub(r"([@.-])", r"%\1", part.replace("[.]", ".")) for part in (before, after)]
    return f"^{plain[0]}{'[0-9a-f]' * int(count)}{plain[1]}$"
