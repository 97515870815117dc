"""The environment of a new grid: a node of the chain, a cluster with its administrator, a certificate authority.

Node and login node listen on loopback of this machine, as in other tests. Relays let the machines reach them.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from deepgrid.slurm.ssh.login_settings import LoginSettings
from deployments.onemachine.daemons.ports import PortBook
from deployments.onemachine.daemons.processes import ProcessTable
from deployments.onemachine.node.anvil import Anvil
from deployments.onemachine.slurm import ClusterSpec, SlurmSite
from tests.machines.machine import Network
from tests.running_site import running_site
from tests.services.edge_support import certify

CLUSTER = "gamma"
SERVICES = "jobs.grid.test"
COINS_WEI = 1000 * 10**18
SPEC = ClusterSpec(CLUSTER, nodes=1, cpus_per_node=4, mem_per_node_mb=8000, own_accounts=True)


@dataclass(frozen=True)
class World:
    """`authority`, `certificate` and `key` are PEM files, for the name SERVICES."""

    folder: Path
    network: Network
    anvil: Anvil
    site: SlurmSite
    authority: Path
    certificate: Path
    key: Path

    @property
    def node_url(self) -> str:
        """The URL of the chain's node for the machines."""
        return f"http://{self.network.host}:{self.anvil.port}"

    @property
    def login(self) -> LoginSettings:
        """The login node, as its administrator describes it. Machines reach its port at the host's address."""
        return self.site.login(CLUSTER)

    def fund(self, address: str) -> None:
        """Give an address some of the chain's currency."""

        async def give() -> None:
            node = self.anvil.private()
            try:
                await node.call("anvil_setBalance", address, hex(COINS_WEI))
            finally:
                await node.close()

        asyncio.run(give())

    @property
    def storage(self) -> str:
        """The folder on the nodes for volumes of jobs."""
        return str(self.folder / "storage")

    def make_folders(self, commands: str) -> None:
        """Make the grid's folders on the login node, by the commands of a page."""
        environment = {**os.environ, "GRID_ROOT": self.login.grid_root, "STORAGE_ROOT": self.storage}
        subprocess.run(["bash", "-euc", commands], env=environment, check=True)

    def let_in(self, public_key: str) -> None:
        """Accept an SSH key on the login node, as the account of the supervisor."""
        with (self.login.key_file.parent / "authorized_keys").open("a") as file:
            file.write(public_key)


@contextmanager
def world(folder: Path, network: Network) -> Iterator[World]:
    """Start all of it below a folder that other accounts can enter."""
    table, ports = ProcessTable(folder), PortBook(folder / "ports.json")
    anvil = Anvil(folder / "anvil", ports.port("node-filter"))
    with ExitStack() as undo:
        anvil.prepare()
        for daemon in (anvil.daemon(), anvil.miner(), anvil.filter()):
            undo.callback(table.stop, daemon.name)
            table.start(daemon)
            table.wait_ready(daemon)
        site, _ = undo.enter_context(running_site(folder, SPEC))
        undo.enter_context(_relays(network.host, [anvil.port, site.login(CLUSTER).port]))
        (folder / "authority").mkdir()
        yield World(folder, network, anvil, site, *certify(folder / "authority", SERVICES))


@contextmanager
def _relays(host: str, ports: Sequence[int]) -> Iterator[None]:
    """Listen on these ports of an address, and forward connections to the same ports of loopback."""
    with start_blocking_portal() as beside:
        servers = [beside.call(partial(asyncio.start_server, partial(_relay, port), host, port)) for port in ports]
        yield
        for server in servers:
            beside.call(server.close)


async def _relay(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()
    writer.close()
