"""The one-machine grid: the steps of `./run up` and their order, and `./run down`.

Every step is idempotent. So a second `up` completes an interrupted one and restarts dead processes. All files
are under the state folder.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from functools import cached_property, partial
from pathlib import Path
from signal import SIGKILL
from typing import ClassVar

from deepgrid.errors import ConfigurationError
from deepgrid.files.private_files import make_private_folder
from deployments.onemachine.clusters import OFFERS, Offer
from deployments.onemachine.daemons.grid_files import socket_path
from deployments.onemachine.daemons.ports import PortBook
from deployments.onemachine.daemons.postgres import Postgres
from deployments.onemachine.daemons.prefect_server import PrefectServer
from deployments.onemachine.daemons.probes import HOST
from deployments.onemachine.daemons.processes import ProcessTable, Report, Step, run_steps
from deployments.onemachine.node.anvil import Anvil
from deployments.onemachine.parties.party_plan import CUSTOMER, KeyRing
from deployments.onemachine.parties.roles import PROXY, SERVICES_GRPC, USERS_OF_PORTS, Roles, services_listen
from deployments.onemachine.slurm import SlurmSite
from deployments.onemachine.view import Row


class LocalGrid:
    """One grid with all its state in one folder.

    `prefect_processes` are the names of Prefect's processes. Each group needs those after it.
    """

    prefect_processes: ClassVar[tuple[tuple[str, ...], ...]] = (("prefect-server",),)

    def __init__(self, state: Path) -> None:
        self.state = state.resolve()
        self.state.mkdir(parents=True, exist_ok=True)
        self.table = ProcessTable(self.state)
        self.ports = PortBook(self.state / "ports.json")
        self.keys = KeyRing(self.state / "keys", tuple(offer.name for offer in OFFERS))
        self.book = self.state / "grid.json"
        self.notes: list[str] = []

    def up(self, report: Report) -> bool:
        """Start everything. Returns False when the grid was up already. Raises GridError; can be repeated."""
        with self._alone():
            self._check_kind()
            if self.is_up():
                return False
            self._marker.unlink(missing_ok=True)
            self.end_leftovers()
            self.ports.forget_taken(lambda name: self.table.alive(USERS_OF_PORTS.get(name, name)))
            run_steps(self.steps(), report)
            self.anvil.keep()
            self._marker.touch()
            return True

    def _check_kind(self) -> None:
        """Raise ConfigurationError while a grid of another kind runs in this folder (`deployments.scaled`)."""
        if (self.state / "scaled").exists():
            raise ConfigurationError("The grid has several Prefect servers.", next_step="Stop it first: ./run down")

    def end_leftovers(self) -> None:
        """End what holds ports of this grid: children of a killed process, and services of an earlier release."""
        for row in self.rows():
            if row.pid is None or (row.name == "services" and not services_listen(self.state)):
                self.table.stop(row.name)

    def down(self) -> list[str]:
        """Stop all processes. Returns the names of the recorded ones."""
        with self._alone():
            self._marker.unlink(missing_ok=True)
            names = self.table.names()
            run_steps(self._stops(names))
            shutil.rmtree(socket_path(self.state), ignore_errors=True)
            return names

    def is_up(self) -> bool:
        """Return whether the last `up` succeeded and no process has died since."""
        return self._marker.exists() and all(row.pid for row in self.rows())

    def start(self, name: str) -> None:
        """Restart one process that was stopped or killed. Returns when it serves."""
        step = next(step for step in self.steps() if step.name.replace(" ", "-") == name)
        step.do()

    def kill(self, name: str) -> None:
        """Kill one process with SIGKILL, like a crash. Other processes are not informed."""
        self.table.stop(name, SIGKILL)

    def rows(self) -> list[Row]:
        """Return all started processes, in the order of their start."""
        return [
            Row(name, self.table.pid(name), self._address(name), self.table.log_path(name))
            for name in self.table.names()
        ]

    # -- starting ----------------------------------------------------------------------------

    def steps(self) -> list[Step]:
        """Return the steps of `up`."""
        return [
            Step("chain", self._start_chain),
            Step("contracts", self._set_up_contracts, ("chain",)),
            Step("postgres", self._start_postgres),
            Step("prefect", self._start_prefect, ("postgres",)),
            Step("slurm", self._start_slurm),
            Step("proxy", lambda: self.table.serve(self.roles.proxy())),
            Step("services", lambda: self.table.serve(self.roles.services()), ("contracts", "postgres", "proxy")),
            Step("web app", self._serve_web, ("services",)),
            Step("deployments", self._tell_prefect, ("contracts", "prefect", "slurm")),
            Step("operator", lambda: self.table.serve(self.roles.operator()), ("deployments",)),
            Step("worker processes", lambda: self.table.serve(self.roles.processes()), ("deployments",)),
            *(Step(f"supervisor {one.name}", partial(self._supervise, one), ("deployments",)) for one in OFFERS),
            Step("approval", self._approve_providers, tuple(f"supervisor {offer.name}" for offer in OFFERS)),
        ]

    @cached_property
    def anvil(self) -> Anvil:
        return Anvil(self.state / "anvil", self.ports.port("node-filter"))

    @cached_property
    def postgres(self) -> Postgres:
        return Postgres(self.state / "postgres", self.ports.port("postgres"))

    @cached_property
    def prefect(self) -> PrefectServer:
        return PrefectServer(self.state / "prefect", self.ports.port(self.prefect_processes[0][0]))

    @cached_property
    def slurm(self) -> SlurmSite:
        return SlurmSite(self.state, [offer.spec for offer in OFFERS], self.ports.port)

    @cached_property
    def roles(self) -> Roles:
        return Roles(self.state, self.book, self.keys, self.prefect, self.postgres, self.slurm, self.ports)

    def _start_chain(self) -> None:
        if not self.table.alive("anvil"):
            for offer in OFFERS:  # a killed chain loses its last seconds, which may include the registration
                self.table.stop(f"supervisor-{offer.name}")
            self.notes += [note] if (note := self.anvil.prepare()) else []
        self.table.serve(self.anvil.daemon())
        self.table.serve(self.anvil.miner())
        self.table.serve(self.anvil.filter())

    def _set_up_contracts(self) -> None:
        from deployments.onemachine.node import chain_setup  # slow to import, and `status` does without

        chain_setup.make_keys(self.keys)
        services_url = f"http://{HOST}:{self.ports.port('services')}"
        urls = {
            "ws_url": self.anvil.ws_url,
            "definitions_url": services_url,
            "logs_url": services_url,
            "prefect_ui_url": self.prefect.ui_url,
        }
        asyncio.run(chain_setup.set_up_contracts(self.book, self.anvil, self.keys, urls))

    def _start_postgres(self) -> None:
        if not self.table.alive("postgres"):
            self.table.stop("postgres")  # child processes that outlived it
            self.postgres.prepare()
        self.table.serve(self.postgres.daemon())
        for name in ("prefect", "services"):
            self.postgres.create_database(name)

    def _start_prefect(self) -> None:
        self.table.serve(self.prefect.daemon(self.postgres.url("prefect")))

    def _start_slurm(self) -> None:
        self.slurm.start(self.table)
        self.notes += self.slurm.notes

    def _serve_web(self) -> None:
        make_private_folder(self.roles.web_address.parent)
        self.table.serve(self.roles.web())

    def web_address(self) -> str:
        """Return the newest address of the web app with its one-time token; empty while it does not run."""
        file = self.roles.web_address
        return file.read_text().strip() if self.table.alive("web") and file.exists() else ""

    def _tell_prefect(self) -> None:
        from deepgrid.chain.transactions.wallet import Wallet  # slow to import

        self.roles.make_folders()
        self.roles.make_accounts(Wallet.load(self.keys.file(CUSTOMER)).address)
        self.roles.write_environments()
        self.roles.tell_prefect(self.table.log_path("registration"))

    def _supervise(self, offer: Offer) -> None:
        self.table.serve(self.roles.supervisor(offer))

    def _approve_providers(self) -> None:
        from deployments.onemachine.node import chain_setup

        asyncio.run(chain_setup.approve_providers(self.book, self.keys))

    # -- stopping ----------------------------------------------------------------------------

    def _stops(self, names: Sequence[str]) -> list[Step]:
        """Stop each process before those that it needs. Records of dead processes are removed."""
        slurm = {daemon.name for daemon in self.slurm.daemons()}
        chain = (("node-filter", "miner"), ("anvil",))
        databases = (*self.prefect_processes, ("postgres",))
        servers = {name for group in (*chain, *databases) for name in group}
        clients = [name for name in names if name not in slurm and name not in servers]
        steps = [Step(name, partial(self.table.stop, name)) for name in clients]
        if slurm.intersection(names):
            steps.append(Step("slurm", lambda: self.slurm.stop(self.table), tuple(clients)))
        for groups in (chain, databases):
            before = tuple(clients)
            for group in groups:
                steps += [Step(name, partial(self.table.stop, name), before) for name in group]
                before += group
        return steps

    # -- state -------------------------------------------------------------------------------

    @property
    def _marker(self) -> Path:
        """Marker file that exists while the last `up` has succeeded."""
        return self.state / "up"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A lock, so that only one `up` or `down` runs at a time. The second one waits."""
        with open(self.state / "lock", "w") as lock:
            flock(lock, LOCK_EX)
            yield

    def _address(self, name: str) -> str:
        if name == "services":
            return "behind proxy"
        port = self.ports.known("services" if name == PROXY else name)
        if port is None:
            return ""
        if name == PROXY:
            return f"127.0.0.1:{port}, gRPC {self.ports.known(SERVICES_GRPC)}"
        return self.prefect.ui_url if name == self.prefect_processes[0][0] else f"127.0.0.1:{port}"
