"""The settings that `dps provider init` asks for: their place in the file, the question, and the usual answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """One setting. `key` is its place in the file, such as `login.host`. `usual` makes the proposed answer.

    An `optional` setting may be empty. `kind` is the type of its value in the file.
    """

    key: str
    words: str
    usual: Callable[[dict[str, str]], str]
    optional: bool = False
    kind: type[str] | type[int] | type[bool] = str

    @property
    def section(self) -> str:
        return self.key.partition(".")[0] if "." in self.key else ""


def _fixed(text: str) -> Callable[[dict[str, str]], str]:
    return lambda _: text


def _variable(name: str, otherwise: str = "") -> Callable[[dict[str, str]], str]:
    return lambda _: os.environ.get(name) or otherwise


def _named(template: str) -> Callable[[dict[str, str]], str]:
    return lambda answers: template.format(cluster=answers["cluster"])


# In the order of the dialogue: each answer is checked with those before it.
QUESTIONS = (
    Question("cluster", "Name of the cluster, of its blocks and of its work pool", _variable("CLUSTER")),
    Question(
        "prefect.api_url", "URL of your Prefect server's API", _variable("PREFECT_API_URL", "http://127.0.0.1:4200/api")
    ),
    Question("prefect.login_file", "File with user:password of that server", _fixed("~/.dps/prefect-login"), True),
    Question("grid.address_book", "The operator's address book", _variable("DEEPGRID_BOOK", "~/.dps/grid.json")),
    Question("grid.key_file", "Key file of the provider", _variable("DPS_KEY_FILE", "~/.dps/key")),
    Question("login.host", "Login node of the cluster: host name or address", _fixed("")),
    Question("login.port", "Port of its sshd", _fixed("22"), kind=int),
    Question("login.user", "Account of the supervisor there", _fixed("deepgrid")),
    Question("login.key_file", "SSH private key of that account, without passphrase", _fixed("~/.ssh/id_ed25519")),
    Question("login.known_hosts_file", "File for the login node's host key", _named("~/.dps/known_hosts-{cluster}")),
    Question("login.partition", "Slurm partition for the grid's jobs", _fixed("main")),
    Question("login.grid_root", "Folder for the grid, shared with the compute nodes", _fixed("/srv/deepgrid")),
    Question("login.storage_root", "Folder on the nodes for volumes of jobs", _fixed("/srv/deepgrid-storage")),
    Question("login.job_account", "One Unix account for all jobs; empty: the login's own", _fixed(""), True),
    Question("prices.cpu", "Price per CPU and minute, in credits", _fixed("0.95")),
    Question("prices.memory_mb", "Price per MB of memory and minute, in credits", _fixed("0.00008")),
    Question("prices.gpu", "Price per GPU and minute, in credits", _fixed("8.5")),
    Question("supervisor.state", "Folder of the supervisor", _named("~/.dps/supervisor-{cluster}")),
    Question("supervisor.metrics_port", "Port of health and metrics, on loopback; 0: none", _fixed("9464"), kind=int),
    Question(
        "supervisor.trust_customers", "Run jobs also where guards are missing (only for people you trust)",
        _fixed("no"), kind=bool,
    ),
)  # fmt: skip
BY_KEY = {question.key: question for question in QUESTIONS}
