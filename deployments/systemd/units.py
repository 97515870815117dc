"""The files that install a role for good: units, accounts (sysusers), folders (tmpfiles), environment files.

No unit opens more than its process needs. Settings are in /etc/deepgrid. Keys and state are in /var/lib/deepgrid, where
processes may write: each keeps a lock next to its key. Logs go to the journal, which rotates them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deepgrid.files.text_templates import text_templates
from deepgrid.services.files.buffers import ALLOCATOR
from deployments.prefect_settings import QUIET, SERVER, WORKER
from orchestration.pools import PROCESSES

TARGET = "deepgrid.target"
TEMPLATES = text_templates("deployments.systemd", "templates")
RIGHTS_SCRIPT = Path(__file__).with_name("with_rights_of")
STATE = "/var/lib/deepgrid"
PREFECT, DATABASE = "deepgrid-prefect.service", "postgresql.service"
ROLE_FILES = ("client.env", "key.env")  # of a process that uses Prefect and a key
NGINX = "/usr/sbin/nginx -e stderr -c /etc/deepgrid/proxy.conf"
RELOAD = "ExecReload=/bin/kill -HUP $MAINPID\n"
# Processes that start after Prefect's server find it ready, even when the machine boots.
PREFECT_IS_READY = """\
ExecStartPost=/usr/bin/curl -fs --retry 150 --retry-delay 1 --retry-connrefused http://127.0.0.1:4200/api/health
TimeoutStartSec=180
"""  # systemd makes the folder; the process hands it to the group of the proxy.
SOCKETS = """SupplementaryGroups=deepgrid-proxy
RuntimeDirectory=deepgrid-services
RuntimeDirectoryMode=0710
"""
# nginx starts as root, binds port 443, reads the key of the certificate, and lets its workers change their account.
PROXY_RIGHTS = "CAP_NET_BIND_SERVICE CAP_DAC_READ_SEARCH CAP_CHOWN CAP_SETUID CAP_SETGID CAP_KILL"
# An account of its own cannot write the UI's pages into the checkout.
SERVER_SETTINGS = {**SERVER, "PREFECT_UI_STATIC_DIRECTORY": f"{STATE}/prefect/ui"}


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a role. `command` is a program of the checkout's environment or a path, with its arguments.

    `environment` names the templates of its environment file; without any there is no file. It starts after the unit
    `after`. A process that `shares_state` runs flows with blocks of its role, so it writes to the folders of other
    processes. `settings` are variables that hold no secret. `further` are lines of the unit. A process with
    `capabilities` starts as root with these only, and then changes to its account.
    """

    name: str
    about: str
    command: str
    environment: tuple[str, ...] = ()
    after: str = ""
    account: str = ""
    shares_state: bool = False
    settings: Mapping[str, str] = field(default_factory=lambda: QUIET)
    further: str = ""
    capabilities: str = ""

    @property
    def user(self) -> str:
        return self.account or f"deepgrid-{self.name}"

    @property
    def started_by(self) -> str:
        return "root" if self.capabilities else self.user

    @property
    def mode(self) -> str:
        """Mode of its folder, which belongs to the account that starts it."""
        return "0710" if self.capabilities else "0700"

    @property
    def state(self) -> str:
        return f"{STATE}/{self.name}"


@dataclass(frozen=True, slots=True)
class File:
    """A file to install. A `secret` one is for root and the account `group`, and never replaced."""

    path: str
    text: str
    secret: bool = False
    group: str = ""
    mode: int = 0o644


def provider_processes(cluster: str) -> list[Process]:
    """Return the processes on a provider's machine.

    The worker opens the provider's blocks, so it has the same account.
    """
    name, about = f"supervisor-{cluster}", f"deepgrid supervisor of the cluster {cluster}"
    command = f"dps provider serve {cluster}"
    supervisor = Process(name, about, command, ROLE_FILES, PREFECT, account="deepgrid-provider")
    return [_prefect(), supervisor, _worker("deepgrid-provider")]


def operator_processes(name: str) -> list[Process]:
    """Return the processes on an operator's machine."""
    serve = Process("operator", "deepgrid operator", f"dps operator serve {name}", ROLE_FILES, PREFECT)
    about = "deepgrid Job Definition and log services"
    command, settings = "dps services serve", {**QUIET, **ALLOCATOR}
    services = Process("services", about, command, ("services.env",), DATABASE, settings=settings, further=SOCKETS)
    about = "nginx in front of deepgrid's services"
    proxy = Process("proxy", about, NGINX, settings={}, further=RELOAD, capabilities=PROXY_RIGHTS)
    return [_prefect(), serve, services, proxy, _worker("deepgrid-operator")]


def files_of(role: str, processes: Sequence[Process], checkout: Path, login: str = "") -> list[File]:
    """Return all files for these processes of a checkout. `role` names the files that they share.

    `login` is Prefect's.
    """
    accounts = sorted({process.user for process in processes})
    sysusers = "".join(f'u {name} - "deepgrid" {STATE}\n' for name in accounts)
    folders = ["d /etc/deepgrid 0755 root root -\n", f"d {STATE} 0755 root root -\n"]
    folders += [f"d {one.state} {one.mode} {one.started_by} {one.user} -\n" for one in processes]
    with_file = [one for one in processes if one.environment]
    rights = [f"z /etc/deepgrid/{one.name}.env 0640 root {one.user} -\n" for one in with_file]
    secret = [(one, "".join(_render(name, process=one, login=login) for name in one.environment)) for one in with_file]
    return [
        File(f"etc/systemd/system/{TARGET}", _render(TARGET, checkout=checkout)),
        *(File(f"etc/systemd/system/deepgrid-{one.name}.service", _unit(one, checkout)) for one in processes),
        File("usr/local/sbin/with_rights_of", RIGHTS_SCRIPT.read_text(), mode=0o755),
        File(f"etc/sysusers.d/deepgrid-{role}.conf", sysusers),
        File(f"etc/tmpfiles.d/deepgrid-{role}.conf", "".join([*folders, *rights])),
        *(File(f"etc/deepgrid/{one.name}.env", text, secret=True, group=one.user) for one, text in secret),
    ]


def _prefect() -> Process:
    command, settings = "prefect server start --host 127.0.0.1 --port 4200", SERVER_SETTINGS
    return Process(
        "prefect", "Prefect server", command, ("prefect.env",), DATABASE, settings=settings, further=PREFECT_IS_READY
    )


def _worker(account: str) -> Process:
    about, command = (
        "Prefect worker for slow flows of deepgrid",
        f"prefect worker start --type process --pool {PROCESSES}",
    )
    return Process("worker", about, command, ("client.env",), PREFECT, account, shares_state=True, settings=WORKER)


def _unit(process: Process, checkout: Path) -> str:
    at_home = checkout.is_relative_to("/home") or checkout.is_relative_to("/root")
    return _render("unit.service", process=process, checkout=checkout, at_home=at_home, target=TARGET)


def _render(template: str, **values: object) -> str:
    return TEMPLATES.get_template(f"{template}.j2").render(values)
