"""The settings that `dps provider init` asks for: their place in the file, the question, and the usual answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

Answers = Mapping[str, str]
KEY = "provider.key"  # on a machine with units, the settings file and the other files are in the same folder
USUAL_FILE = "provider.toml"


@dataclass(frozen=True, slots=True)
class Question:
    """One setting. `key` is its place in the file, such as `login.host`.

    `usual` is the proposed answer, or makes it of the answers so far and the path of the settings file. An `optional`
    setting may be empty. `kind` is the type of its value in the file. A setting is asked for if it `applies` to the
    answers so far.
    """

    key: str
    words: str
    usual: str | Callable[[Answers, Path], str] = ""
    optional: bool = False
    kind: type[str] | type[int] | type[bool] | type[dict[str, str]] = str
    applies: Callable[[Answers], bool] = lambda _: True

    def proposal(self, answers: Answers, settings: Path) -> str:
        """Return the proposed answer."""
        return self.usual if isinstance(self.usual, str) else self.usual(answers, settings)


def _variable(name: str, otherwise: str = "") -> Callable[[Answers, Path], str]:
    return lambda _, __: os.environ.get(name) or otherwise


def _cluster(_: Answers, settings: Path) -> str:
    return os.environ.get("CLUSTER") or ("" if settings.name == USUAL_FILE else settings.stem.removeprefix("provider-"))


def _file(name: str, otherwise: str) -> Callable[[Answers, Path], str]:
    """Return a file next to the settings file, if the provider's key is there too."""

    def usual(answers: Answers, settings: Path) -> str:
        folder = settings.absolute().parent
        return str(folder / name) if (folder / KEY).exists() else otherwise.format(cluster=answers["cluster"])

    return usual


def _apart(answers: Answers) -> bool:
    """Return whether customers have separate accounts."""
    return bool(answers.get("login.account_pattern") or answers.get("login.account_table"))


def _together(answers: Answers) -> bool:
    return not _apart(answers)


def _by_sudo(answers: Answers) -> bool:
    return _apart(answers) and answers.get("login.become") == "sudo"


def _become(answers: Answers, _: Path) -> str:
    return "uid" if answers["login.user"] == "root" else "sudo"


PREFECT_API = _variable("PREFECT_API_URL", "http://127.0.0.1:4200/api")
PREFECT_LOGIN = _file("prefect-login", "~/.dps/prefect-login")
SSH_KEY = _file("id_ed25519", "~/.ssh/id_ed25519")
KNOWN_HOSTS = _file("known_hosts", "~/.dps/known_hosts-{cluster}")
WRAPPER = "/usr/local/sbin/deepgrid-sbatch"
# In the order of the dialogue: each answer is checked with those before it.
QUESTIONS = (
    Question("cluster", "Name of the cluster, of its blocks and of its work pool", _cluster),
    Question("prefect.api_url", "URL of your Prefect server's API", PREFECT_API),
    Question("prefect.login_file", "File with user:password of that server", PREFECT_LOGIN, optional=True),
    Question("grid.address_book", "The operator's address book", _variable("DEEPGRID_BOOK", "~/.dps/grid.json")),
    Question("grid.key_file", "Key file of the provider", _variable("DPS_KEY_FILE", "~/.dps/key")),
    Question("login.host", "Login node of the cluster: host name or address; several with commas"),
    Question("login.port", "Port of its sshd", "22", kind=int),
    Question("login.user", "Account of the supervisor there", "deepgrid"),
    Question("login.jump_host", "Jump host in front of it: [USER@]HOST[:PORT]; empty: none", optional=True),
    Question("login.key_file", "SSH private key of that account, without passphrase", SSH_KEY),
    Question("login.known_hosts_file", "File for the login node's host key", KNOWN_HOSTS),
    Question("login.partition", "Slurm partition for the grid's jobs", "main"),
    Question("login.grid_root", "Folder for the grid, shared with the compute nodes", "/srv/deepgrid"),
    Question("login.storage_root", "Folder on the nodes for volumes of jobs", "/srv/deepgrid-storage"),
    Question(
        "login.account_pattern",
        "Unix accounts of customers, such as ds-{digits:24}; empty: one account for all",
        optional=True,
    ),
    Question("login.become", "How it submits for them: uid (as root) or sudo", _become, applies=_apart),
    Question("login.submit_wrapper", "Submission wrapper on the login node", WRAPPER, applies=_by_sudo),
    Question(
        "login.own_account",
        "Unix account of the supervisor's own jobs, such as benchmarks; empty: the login's own",
        optional=True,
        applies=_apart,
    ),
    Question(
        "login.job_account", "One Unix account for all jobs; empty: the login's own", optional=True, applies=_together
    ),
    Question("prices.cpu", "Price per CPU and minute, in credits", "0.95"),
    Question("prices.memory_mb", "Price per MB of memory and minute, in credits", "0.00008"),
    Question("prices.gpu", "Price per GPU and minute, in credits", "8.5"),
    Question(
        "labels", "Labels that customers can ask for, such as region=ch,network=ethernet", optional=True, kind=dict
    ),
    Question("supervisor.state", "Folder of the supervisor", _file("state", "~/.dps/supervisor-{cluster}")),
    Question("supervisor.metrics_port", "Port of health and metrics, on loopback; 0: none", "9464", kind=int),
    Question(
        "supervisor.trust_customers",
        "Run jobs also where guards are missing (only for people you trust)",
        "no",
        kind=bool,
    ),
)
BY_KEY = {question.key: question for question in QUESTIONS}
