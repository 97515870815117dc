"""The files that install a role for good: units, accounts (sysusers), folders (tmpfiles), environment files.

No unit opens more than its process needs. Settings are in /etc/deepgrid. Keys and state are in /var/lib/deepgrid, where
processes may write: each keeps a lock beside its key. Logs go to the journal, which rotates them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from deployments.prefect_settings import QUIET, SERVER, WORKER
from orchestration.pools import PROCESSES

STOP_S = 15  # after SIGTERM the processes end within 10 s
OPEN_FILES = 32768  # of nginx: two for each connection that it accepts

TARGET = "deepgrid.target"
TEMPLATES = Path(__file__).with_name("templates")
# Processes that start after Prefect's server find it ready, also when the machine boots.
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
STATE = "/var/lib/deepgrid"
RIGHTS_SCRIPT = Path(__file__).with_name("with_rights_of")
# An account of its own cannot write the UI's pages into the checkout.
SERVER_SETTINGS = {**SERVER, "PREFECT_UI_STATIC_DIRECTORY": f"{STATE}/prefect/ui"}


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a role. `command` is a program of the checkout's environment or a path, with its arguments.

    One that `shares_state` runs flows with blocks of its role, whose state folders are those of other processes.
    `settings` are variables that hold no secret. `environment` names the templates of its environment file; without any
    there is no file. `further` are lines of the unit.
    One with `capabilities` starts as root with these only, and then changes to its account.
    """

    name: str
    about: str
    command: str
    environment: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
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
    def unit(self) -> str:
        return f"deepgrid-{self.name}.service"

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
    """The processes on a provider's machine. The worker opens the provider's blocks, so it has the same account."""
    supervisor = Process(
        f"supervisor-{cluster}", f"deepgrid supervisor of the cluster {cluster}", f"dps provider serve {cluster}",
        ("client.env", "key.env"), after=("deepgrid-prefect.service",), account="deepgrid-provider",
    )  # fmt: skip
    return [_prefect(), supervisor, _worker("deepgrid-provider")]


def operator_processes(name: str) -> list[Process]:
    """The processes on an operator's machine."""
    serve = Process(
        "operator", "deepgrid operator", f"dps operator serve {name}", ("client.env", "key.env"),
        after=("deepgrid-prefect.service",),
    )  # fmt: skip
    services = Process(
        "services", "deepgrid Job Definition and log services", "dps services serve", ("services.env",),
        after=("postgresql.service",), further=SOCKETS,
    )  # fmt: skip
    proxy = Process(
        "proxy", "nginx in front of deepgrid's services", "/usr/sbin/nginx -e stderr -c /etc/deepgrid/proxy.conf",
        settings={}, further="ExecReload=/bin/kill -HUP $MAINPID\n", capabilities=PROXY_RIGHTS,
    )  # fmt: skip
    return [_prefect(), serve, services, proxy, _worker("deepgrid-operator")]


def files_of(role: str, processes: Sequence[Process], checkout: Path, login: str = "") -> list[File]:
    """All files for these processes of a checkout. `role` names the files that they share. `login` is Prefect's."""
    accounts = sorted({process.user for process in processes})
    sysusers = "".join(f'u {name} - "deepgrid" {STATE}\n' for name in accounts)
    folders = ["d /etc/deepgrid 0755 root root -\n", f"d {STATE} 0755 root root -\n"]
    folders += [f"d {one.state} {one.mode} {one.started_by} {one.user} -\n" for one in processes]
    with_file = [one for one in processes if one.environment]
    rights = [f"z /etc/deepgrid/{one.name}.env 0640 root {one.user} -\n" for one in with_file]
    return [
        File(f"etc/systemd/system/{TARGET}", _rendered(TARGET, checkout=checkout)),
        *(File(f"etc/systemd/system/{one.unit}", _unit(one, checkout)) for one in processes),
        File("usr/local/sbin/with_rights_of", RIGHTS_SCRIPT.read_text(), mode=0o755),
        File(f"etc/sysusers.d/deepgrid-{role}.conf", sysusers),
        File(f"etc/tmpfiles.d/deepgrid-{role}.conf", "".join([*folders, *rights])),
        *(
            File(f"etc/deepgrid/{one.name}.env", _environment(one, login), secret=True, group=one.user)
            for one in with_file
        ),
    ]


def _prefect() -> Process:
    return Process(
        "prefect", "Prefect server", "prefect server start --host 127.0.0.1 --port 4200", ("prefect.env",),
        after=("postgresql.service",), settings=SERVER_SETTINGS, further=PREFECT_IS_READY,
    )  # fmt: skip


def _worker(account: str) -> Process:
    return Process(
        "worker", "Prefect worker for slow flows of deepgrid",
        f"prefect worker start --type process --pool {PROCESSES}", ("client.env",),
        after=("deepgrid-prefect.service",), account=account, shares_state=True, settings=WORKER,
    )  # fmt: skip


def _rendered(template: str, **values: object) -> str:
    return Template((TEMPLATES / template).read_text()).substitute(values)


def _environment(process: Process, login: str) -> str:
    owner = process.user.removeprefix("deepgrid-")
    return "".join(_rendered(one, login=login, state=process.state, owner=owner) for one in process.environment)


def _unit(process: Process, checkout: Path) -> str:
    at_home = checkout.is_relative_to("/home") or checkout.is_relative_to("/root")
    settings = "".join(f"Environment={name}={value}\n" for name, value in process.settings.items())
    if process.environment:
        settings += f"EnvironmentFile=/etc/deepgrid/{process.name}.env\n"
    return _rendered(
        "unit.service",
        about=process.about, after="".join(f" {unit}" for unit in process.after), user=process.started_by,
        account=process.user, checkout=checkout, name=process.name, state=process.state, settings=settings,
        program=Path(checkout, ".venv/bin", process.command), stop_s=STOP_S, files=OPEN_FILES,
        home="read-only" if at_home else "yes", target=TARGET, further=process.further,
        capabilities=process.capabilities, mode=process.mode,
        writes=f"\nReadWritePaths=-{STATE}" if process.shares_state else "",
    )  # fmt: skip
