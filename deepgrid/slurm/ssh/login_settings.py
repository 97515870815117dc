"""Settings of a login node: its address, the Unix accounts of customers' jobs, and submission for them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from deepgrid.errors import ConfigurationError, SlurmError

SSH_PORT, LAST_PORT = 22, 65535
DEFAULT_SLURM_TIMEOUT_S, LONGEST_SLURM_TIMEOUT_S = 20.0, 300.0
FEWEST_DIGITS = 16  # of 40: with fewer, a stranger could search for an address with the same digits
_NAME = re.compile(r"(?=.*[A-Za-z_])[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}", re.ASCII)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}", re.ASCII)
_JUMP = re.compile(r"(?:(?P<user>[^@\s,]+)@)?(?P<host>\[[^\]\s,]+\]|[^:@\s,\[\]]+)(?::(?P<port>\d{1,5}))?", re.ASCII)
_PLACEHOLDER = re.compile(r"\{(address|digits)(?::(\d{1,2}))?\}", re.ASCII)


class Become(Enum):
    """How the login submits for another account."""

    UID = "uid"  # `sbatch --uid`, which needs root
    SUDO = "sudo"  # `sudo -n -u ACCOUNT`, which needs a rule in sudoers


@dataclass(frozen=True, slots=True)
class CustomerAccounts:
    """Accounts of customers: `table` by wallet address, `pattern` for all other customers.

    A pattern contains `{address}` (0x and 40 hex digits in lower case), `{digits}` (the same without 0x), or the first
    of these digits, such as `{digits:24}`. Raises ConfigurationError for an invalid address or account name.
    """

    table: Mapping[str, str] = field(default_factory=dict, hash=False)
    pattern: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", _checked_table(self.table))
        if self.pattern:
            _check_pattern(self.pattern)

    def __bool__(self) -> bool:
        return bool(self.table or self.pattern)

    def of(self, customer: str) -> str | None:
        """Return the customer's own account; None if the customer has none."""
        address = customer.lower()
        if not _ADDRESS.fullmatch(address):
            return None
        return self.table.get(address) or (_fill_in(self.pattern, address) if self.pattern else None)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An sshd: its address, the account and key to log in with, and the file with its host key."""

    host: str
    port: int
    user: str
    key_file: Path
    known_hosts_file: Path
    role: str = "login node"

    def __post_init__(self) -> None:
        if not self.host.strip() or not 0 < self.port <= LAST_PORT:
            raise ConfigurationError(
                f"{self.host[:80]!r}, port {self.port} is no address of a {self.role}.",
                next_step=f"Name a host, and a port from 1 to {LAST_PORT}.",
            )

    def __str__(self) -> str:
        return f"{self.role} {self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class LoginSettings:
    """How to reach a cluster's login node, and where the grid's files are on it.

    `grid_root` is a folder on the login node that is shared with the compute nodes. `job_account` is the Unix account
    for jobs of customers without an account in `accounts`. If it is None and `accounts` is empty, jobs run under the
    login's own account; if it is None and `accounts` is set, such customers are refused. `own_account` is for the
    supervisor's own jobs, None for `job_account`. `submit_wrapper` is the path of the root-owned program that submits
    where `become` is sudo; without it the customers' accounts submit their jobs themselves. `key_file` and
    `known_hosts_file` are paths, never keys.

    `other_hosts` are further login nodes of the same cluster, with the same port, account, key and folder. They are
    tried in turn when one does not answer. `jump` is the host through which the login nodes are reached.

    `slurm_path` are folders of Slurm's commands, with colons between them. Without it, they are searched on the PATH of
    the login's shell. A command of Slurm that does not answer within `slurm_timeout_s` has failed.

    `timeout_grace_s` is how long `Login.run` waits beyond a command's timeout before it drops the connection.
    `keepalive_s` is the pause after which an idle connection sends something, so that firewalls keep it.
    `dead_peer_s` is how long sent data may stay unconfirmed before the connection counts as broken.
    """

    host: str
    port: int
    user: str
    key_file: Path
    known_hosts_file: Path
    grid_root: str
    partition: str = "main"
    job_account: str | None = None
    accounts: CustomerAccounts = field(default_factory=CustomerAccounts)
    become: Become = Become.UID
    own_account: str | None = None
    submit_wrapper: str = ""
    connect_timeout_s: float = 10.0
    command_timeout_s: float = 60.0
    timeout_grace_s: float = 5.0
    max_channels: int = 8
    other_hosts: tuple[str, ...] = ()
    jump: Endpoint | None = None
    keepalive_s: int = 15
    dead_peer_s: int = 45
    slurm_path: str = ""
    slurm_timeout_s: float = DEFAULT_SLURM_TIMEOUT_S

    def __post_init__(self) -> None:
        self.endpoints()  # refuses addresses that cannot be used
        # Slurm expands `%` in file names, and the path appears in scripts and in listings.
        if not re.fullmatch(r"/[\w/.+@-]*", self.grid_root, re.ASCII):
            raise ConfigurationError(
                f"The grid's folder {self.grid_root!r} must be an absolute path of plain characters."
            )
        for name in filter(None, (self.job_account, self.own_account)):
            check_name(name)
        if self.submit_wrapper and not re.fullmatch(r"(?:/[\w+@-][\w.+@-]*)+", self.submit_wrapper, re.ASCII):
            raise ConfigurationError(
                f"The wrapper {self.submit_wrapper!r} must be an absolute path of plain characters."
            )

        if self.slurm_path and not re.fullmatch(r"(?:/[\w.+@-]+)+(?::(?:/[\w.+@-]+)+)*", self.slurm_path, re.ASCII):
            raise ConfigurationError(
                f"slurm_path {self.slurm_path!r} must be one or more absolute paths of plain characters."
            )
        if not 1 <= self.slurm_timeout_s <= LONGEST_SLURM_TIMEOUT_S:
            raise ConfigurationError(f"slurm_timeout_s must be from 1 to {LONGEST_SLURM_TIMEOUT_S:.0f}.")

    @property
    def answer_timeout_s(self) -> float:
        """How long a command on the login node may take. It grows with the time that a command of Slurm may take."""
        return self.command_timeout_s * max(self.slurm_timeout_s / DEFAULT_SLURM_TIMEOUT_S, 1.0)

    def endpoints(self) -> list[Endpoint]:
        """Return all login nodes, in the order of the settings."""
        hosts = (self.host, *self.other_hosts)
        return [Endpoint(host, self.port, self.user, self.key_file, self.known_hosts_file) for host in hosts]

    @property
    def submits_by(self) -> str:
        """How our scripts submit for other accounts: `uid`, `sudo`, or `sudo:` and the wrapper's path."""
        if self.become is Become.SUDO and self.submit_wrapper:
            return f"{self.become.value}:{self.submit_wrapper}"
        return self.become.value

    def account_of(self, customer: str) -> str:
        """Return the account for a job of this customer (a wallet address); empty for the login's own.

        Raises SlurmError when this cluster does not serve the customer.
        """
        account = self.accounts.of(customer) or self.job_account
        if account is None and self.accounts:
            raise SlurmError(f"This cluster has no Unix account for the customer {customer}.")
        return account or ""


def split_hosts(text: str) -> tuple[str, ...]:
    """Return the login nodes that a text names, separated by commas. Raises ConfigurationError without any."""
    hosts = tuple(host for part in text.split(",") if (host := part.strip()))
    if not hosts:
        raise ConfigurationError("The settings name no login node.", next_step="Name its host.")
    return hosts


def parse_jump(text: str, user: str, key_file: Path, known_hosts_file: Path) -> Endpoint | None:
    """Read `[USER@]HOST[:PORT]`, as in OpenSSH's ProxyJump; None for an empty text. Raises ConfigurationError."""
    if not text.strip():
        return None
    found = _JUMP.fullmatch(text.strip())
    if found is None:
        raise ConfigurationError(
            f"The jump host {text[:80]!r} cannot be read.", next_step="Write [USER@]HOST[:PORT], one host only."
        )
    host, port = found["host"].strip("[]"), int(found["port"] or SSH_PORT)
    return Endpoint(host, port, found["user"] or user, key_file, known_hosts_file, role="jump host")


def check_name(name: str) -> str:
    """Return `name` if it is valid for a Unix account. Plain numbers are not: commands read them as ids."""
    if not _NAME.fullmatch(name) or name == "root":
        raise ConfigurationError(
            f"{name[:80]!r} cannot be the Unix account of jobs.",
            next_step="Use letters, digits and . _ @ -, not only digits, and not root.",
        )
    return name


def as_expression(pattern: str) -> str:
    """Return an extended regular expression for the names that a pattern can give; empty without a pattern."""
    before, *rest = re.split(_PLACEHOLDER, pattern, maxsplit=1)
    if not rest:
        return ""
    kind, digits, after = rest
    prefix = "0x" if kind == "address" else ""
    text = f"{before}{prefix}[0-9a-f]{{{digits or 40}}}{after}"
    return text.replace(".", "[.]")  # of the characters of a name only the dot is special


def _checked_table(table: Mapping[str, str]) -> dict[str, str]:
    checked: dict[str, str] = {}
    for address, name in table.items():
        if not _ADDRESS.fullmatch(address):
            raise ConfigurationError(f"{address[:80]!r} in the table of accounts is not a wallet address.")
        if address.lower() in checked:
            raise ConfigurationError(f"{address} is in the table of accounts twice.")
        checked[address.lower()] = check_name(name)
    return checked


def _check_pattern(pattern: str) -> None:
    found = _PLACEHOLDER.search(pattern)
    if found is None or (found[2] and (found[1] != "digits" or not FEWEST_DIGITS <= int(found[2]) <= 40)):
        raise ConfigurationError(
            f"The pattern {pattern[:80]!r} does not name one account per customer.",
            next_step=f"Put {{address}}, {{digits}} or {{digits:N}} into it, N from {FEWEST_DIGITS} to 40.",
        )
    check_name(_fill_in(pattern, "0x" + "a" * 40))


def _fill_in(pattern: str, address: str) -> str:
    def text(found: re.Match[str]) -> str:
        return address if found[1] == "address" else address.removeprefix("0x")[: int(found[2] or 40)]

    return _PLACEHOLDER.sub(text, pattern, count=1)
