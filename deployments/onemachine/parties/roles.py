"""The roles of the one-machine grid: processes of operator and providers, and their registration at Prefect."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from deepgrid.errors import ConfigurationError
from deepgrid.files.private_files import make_private_folder, replace_file
from deepgrid.sbatch import StoragePaths
from deepgrid.services.edge.proxy_file import ProxySettings, proxy_file
from deepgrid.services.files.buffers import ALLOCATOR
from deployments.onemachine.clusters import OFFERS, Offer
from deployments.onemachine.daemons.grid_files import socket_folder, socket_path
from deployments.onemachine.daemons.ports import PortBook
from deployments.onemachine.daemons.postgres import Postgres
from deployments.onemachine.daemons.prefect_server import PrefectServer
from deployments.onemachine.daemons.probes import HOST, answers, connects, listens
from deployments.onemachine.daemons.processes import Daemon, nginx, worker_account
from deployments.onemachine.parties.party_plan import (
    CUSTOMER,
    OPERATOR,
    OPERATOR_NAME,
    REGISTERED,
    ClusterPlan,
    KeyRing,
    Plan,
)
from deployments.onemachine.slurm import SlurmSite
from deployments.onemachine.view import environment_file
from deployments.prefect_settings import WORKER
from orchestration.pools import PROCESSES, operator_pool, provider_pool

COMMANDS = ("dps", "prefect")
SERVED_WITHIN_S = 300.0
POLL_S = 0.5  # each answer of Prefect takes processor time that the starting processes need
PROXY = "proxy"
SERVICES_GRPC, SERVICES_METRICS = "services-grpc", "services-metrics"  # further ports of the services
# Processes that use a port of another name.
USERS_OF_PORTS = {"services": PROXY, SERVICES_GRPC: PROXY, SERVICES_METRICS: "services"}
# Guards that need cgroups or mount namespaces, which slurmd does not have here, or rules of the machine's firewall.
ACCEPTED_GAPS = ("proctrack", "task_plugin", "contain", "private_tmp", "disk_quota", "connections")
# Fields that `LoginSettings` and the block `SlurmLogin` share.
LOGIN_FIELDS = "host port user key_file known_hosts_file grid_root partition job_account own_account"


def services_listen(state: Path) -> bool:
    """Return whether the services listen for the proxy. Services of earlier releases listened at its ports."""
    return connects(_sockets(state) / "http.sock")


def _sockets(state: Path) -> Path:
    """Return the folder in which the services listen for the proxy."""
    return socket_path(state) / "services"


@dataclass(frozen=True)
class Roles:
    """The processes of all roles. `state` is the grid's folder, `book` its address book.

    `claim_stays_s` is for the provider block: a development chain has no reorganisations.
    """

    state: Path
    book: Path
    keys: KeyRing
    prefect: PrefectServer
    postgres: Postgres
    slurm: SlurmSite
    ports: PortBook
    claim_stays_s: float = 0.0

    def proxy(self) -> Daemon:
        """nginx in front of the services. Others reach them at its ports only."""
        sockets, state = (_sockets(self.state),), make_private_folder(socket_folder(self.state) / PROXY)
        listen, grpc = (f"{HOST}:{self.services_port}",), f"{HOST}:{self.ports.port(SERVICES_GRPC)}"
        settings = ProxySettings(
            sockets=sockets, listen=listen, clear_grpc=grpc, account=worker_account(), workers="1", state=state
        )
        configuration = make_private_folder(self.state / PROXY) / "nginx.conf"
        replace_file(configuration, proxy_file(settings).encode())
        return nginx(PROXY, configuration, lambda: listens(self.services_port))

    def services(self) -> Daemon:
        """Return the Job Definition and log services. They are ready when they answer through the proxy."""
        env = {
            "DEEPGRID_BOOK": str(self.book),
            "DEEPGRID_SERVICES_DATABASE": self.postgres.url("services"),
            **ALLOCATOR,
        }
        argv = [str(self.dps), "services", "serve", "--migrate", "--sockets", str(_sockets(self.state))]
        argv += ["--secret-file", str(self.state / "services" / "secret")]
        argv += ["--metrics-port", str(self.ports.port(SERVICES_METRICS))]
        argv += ["--files", str(self.state / "services" / "files")]
        socket_folder(self.state)

        def is_ready() -> bool:  # nginx logs each request that it cannot pass on
            return services_listen(self.state) and answers(self.services_port, "/v1/health")

        return Daemon("services", argv, is_ready, SERVED_WITHIN_S, env)

    def web(self) -> Daemon:
        """Return the customer's web app. Each of its addresses with a fresh one-time token is in `web_address`."""
        port = self.ports.port("web")
        argv = [str(self.dps), "web", "--no-browser", "--port", str(port), "--address-file", str(self.web_address)]
        env = self.customer_environment()
        return Daemon("web", argv, lambda: answers(port, "/signer"), SERVED_WITHIN_S, env, stop_within_s=10.0)

    @property
    def web_address(self) -> Path:
        """File with the newest address of the web app, which works once."""
        return self.state / "web" / "address"

    def operator(self) -> Daemon:
        """Return the meta-scheduler's process."""
        return self._flow_runner(
            "operator", [str(self.dps), "operator", "serve", OPERATOR_NAME], operator_pool(OPERATOR_NAME)
        )

    def supervisor(self, offer: Offer) -> Daemon:
        """Return the supervisor of one cluster. When it is ready, the provider is registered on chain."""
        name = f"supervisor-{offer.name}"
        return self._flow_runner(name, [str(self.dps), "provider", "serve", offer.name], provider_pool(offer.name))

    def processes(self) -> Daemon:
        """Prefect's own worker, for the slow scheduled flows: each run is a process."""
        prefect = str(self.dps.with_name("prefect"))
        argv = [prefect, "worker", "start", "--pool", PROCESSES, "--type", "process", "--name", PROCESSES]
        return self._flow_runner(f"worker-{PROCESSES}", argv, PROCESSES, **WORKER)

    def tell_prefect(self, log: Path) -> None:
        """Register pools, blocks and deployments, unless Prefect has exactly these. Raises ConfigurationError."""
        plan = self._plan()
        if self.prefect.variable(REGISTERED) == plan.digest():
            return
        argv = [sys.executable, "-m", "deployments.onemachine.parties.registration"]
        env = {**os.environ, **self.prefect.environment()}
        with open(log, "ab") as output:
            done = subprocess.run(
                argv, input=plan.model_dump_json().encode(), env=env, stdout=output, stderr=output, check=False
            )
        if done.returncode:
            raise ConfigurationError("The grid could not be registered at Prefect.", next_step=f"Read {log}.")

    def make_folders(self) -> None:
        """Create the private folders of operator and supervisors, and the folders of the jobs' volumes."""
        make_private_folder(self.state / "operator")
        for offer in OFFERS:
            make_private_folder(self._supervisor_state(offer))
            for root in StoragePaths.under(self._storage(offer)).roots:
                Path(root).mkdir(parents=True, exist_ok=True)
                Path(root).chmod(0o1777)

    def make_accounts(self, customer: str) -> list[str]:
        """Return the customer's accounts on each cluster, by wallet address; none where all jobs share our account.

        Raises ConfigurationError for a malformed address, or when an account cannot be created.
        """
        return [name for offer in OFFERS if (name := self.slurm.admit(offer.name, customer))]

    @property
    def services_port(self) -> int:
        """Port at which the proxy passes requests to the services."""
        return self.ports.port("services")

    @property
    def dps(self) -> Path:
        """The `dps` command."""
        return Path(sys.executable).parent / "dps"

    def customer_environment(self) -> dict[str, str]:
        """Return the environment of `dps` for the grid's customer."""
        return self._environment(CUSTOMER, {})

    def write_environments(self) -> None:
        """Write a file to source for each role, such as `<state>/customer.env`, and a folder with the commands.

        The files are private, because some hold the login of Prefect.
        """
        self._write_environment(CUSTOMER, self.customer_environment())
        self._write_environment(OPERATOR, self._environment(OPERATOR, self.prefect.environment()))
        for offer in OFFERS:
            settings = {**self.prefect.environment(), **self.slurm.environment(offer.name)}
            self._write_environment(offer.name, self._environment(offer.name, settings))
        self._commands.mkdir(exist_ok=True)
        for name in COMMANDS:
            link = self._commands / name
            link.unlink(missing_ok=True)
            link.symlink_to(self.dps.with_name(name))

    def _environment(self, name: str, settings: dict[str, str]) -> dict[str, str]:
        return {"DEEPGRID_BOOK": str(self.book), "DPS_KEY_FILE": str(self.keys.file(name)), **settings}

    def _write_environment(self, name: str, variables: dict[str, str]) -> None:
        replace_file(self.state / f"{name}.env", environment_file(variables, self._commands).encode())

    @property
    def _commands(self) -> Path:
        """Link only our commands. The whole .venv/bin on a user's path would hide the user's own python."""
        return self.state / "bin"

    def _flow_runner(self, name: str, argv: list[str], pool: str, **settings: str) -> Daemon:
        since = datetime.now(UTC)
        env = {**settings, **self.prefect.environment()}
        ready = partial(self.prefect.worker_seen, pool, since)
        return Daemon(name, argv, ready, SERVED_WITHIN_S, env, poll_s=POLL_S)

    def _plan(self) -> Plan:
        operator: dict[str, Any] = {"approve_label_changes": True, "state": self.state / "operator"}
        operator["metrics_port"] = self.ports.port(OPERATOR)
        url, clusters = f"http://{HOST}:{self.services_port}", [self._cluster_plan(offer) for offer in OFFERS]
        wallet = self._wallet(OPERATOR)
        return Plan(book=self.book, services_url=url, wallet=wallet, operator=operator, clusters=clusters)

    def _wallet(self, name: str) -> dict[str, str]:
        from deepgrid.chain.transactions.wallet import Wallet  # slow to import

        key_file = self.keys.file(name)
        return {"address": Wallet.load(key_file).address, "key_file": str(key_file)}

    def _cluster_plan(self, offer: Offer) -> ClusterPlan:
        login = self.slurm.login(offer.name)
        block = {name: getattr(login, name) for name in LOGIN_FIELDS.split()}
        block |= {"storage_root": self._storage(offer), "account_pattern": login.accounts.pattern}
        block |= {"apptainer": self.slurm.programs.apptainer, "local_images": self.slurm.programs.local_images}
        provider: dict[str, Any] = {name: str(wei) for name, wei in asdict(offer.prices).items()}
        provider |= {
            "labels": offer.labels,
            "state": self._supervisor_state(offer),
            "claim_stays_s": self.claim_stays_s,
        }
        provider |= {"metrics_port": self.ports.port(f"supervisor-{offer.name}"), "accepted_gaps": ACCEPTED_GAPS}
        provider["trust_customers"] = not login.accounts  # one account for all jobs, unless root made one per customer
        wallet = self._wallet(offer.name)
        return ClusterPlan(name=offer.name, wallet=wallet, login=block, benchmarks=offer.benchmarks, provider=provider)

    def _supervisor_state(self, offer: Offer) -> Path:
        return self.state / f"supervisor-{offer.name}"

    def _storage(self, offer: Offer) -> str:
        return str(self.state / "storage" / offer.name)
