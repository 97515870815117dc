"""A real grid whose supervisor can be broken, with real chain, Slurm, SSH, PostgreSQL, Prefect and services.

The supervisor of `World.cluster` is the one under test. It has its own proxies to its sshd and its chain's node, so
that faults there affect nothing else. The other cluster stays healthy.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.client.session import CustomerSession, CustomerSettings, customer_session
from deepgrid.provider.session import ProviderSettings
from deployments.onemachine.clusters import OFFERS, Offer
from deployments.onemachine.daemons.processes import Daemon
from deployments.onemachine.grid import LocalGrid
from deployments.onemachine.parties.roles import Roles
from tests.chaos.process import Supervisor
from tests.chaos.proxy import Proxy
from tests.chaos.supervisor import Patches

CREDIT_WEI = 10**18
PURSE_WEI = 10**7 * CREDIT_WEI
FORKER = "forker"
REPOSITORY = Path(__file__).parents[2]


class ChaosGrid(LocalGrid):
    """The one-machine grid without the supervisor of `cluster`."""

    def __init__(self, state: Path, cluster: str) -> None:
        super().__init__(state)
        self.cluster = cluster
        self.ssh = Proxy(self.ports.port(f"{cluster}-sshd"))
        self.rpc = Proxy(self.ports.port("node-filter"))
        # Paths of sockets must be short, and the grid's folder may be deep.
        self._sockets = Path(tempfile.mkdtemp(prefix="chaos-"))

    def up(self, *args, **options) -> bool:  # type: ignore[no-untyped-def]
        self.ssh.start()
        self.rpc.start()
        return super().up(*args, **options)

    def down(self) -> list[str]:
        names = super().down()
        self.ssh.close()
        self.rpc.close()
        shutil.rmtree(self._sockets)
        return names

    @cached_property
    def roles(self) -> Roles:
        """Reorganisations of this chain drop claims of the other cluster too."""
        return replace(super().roles, claim_stays_s=ProviderSettings.claim_stays_s)

    def _supervise(self, offer: Offer) -> None:
        if offer.name != self.cluster:
            super()._supervise(offer)
            return
        self.table.serve(self._forker())
        self.supervisor.start()

    def make_supervisor(self, name: str) -> Supervisor:
        """Return a supervisor of the cluster under test with its own folder. It is not started yet."""
        folder = self.state / "chaos" / name
        folder.mkdir(parents=True, exist_ok=True)
        hosts = folder / "known_hosts"
        real = self.slurm.login(self.cluster)
        hosts.write_text(real.known_hosts_file.read_text().replace(f":{real.port}", f":{self.ssh.port}"))
        book = AddressBook.load(self.book).model_copy(update={"rpc_url": f"http://127.0.0.1:{self.rpc.port}"})
        (folder / "grid.json").write_text(book.model_dump_json())
        state = str(folder / "state")
        patches = Patches(self.ssh.port, str(hosts), str(folder / "grid.json"), str(folder / "kill"), state)
        return Supervisor(self.cluster, self._sockets / FORKER, folder, patches)

    @property
    def supervisor(self) -> Supervisor:
        """The supervisor under test."""
        if not hasattr(self, "_supervisor"):
            self._supervisor = self.make_supervisor("first")
        return self._supervisor

    def _forker(self) -> Daemon:
        import sys

        socket = self._sockets / FORKER
        argv = [sys.executable, "-m", "tests.chaos.supervisor", "--ready", str(socket)]
        env = {**self.prefect.environment(), "PYTHONPATH": str(REPOSITORY)}
        return Daemon(f"supervisor-{self.cluster}", argv, socket.exists, 120.0, env, cwd=str(REPOSITORY))


class World:
    """Everything that a fault may break and a round needs. `chaos_world` creates it."""

    def __init__(self, grid: ChaosGrid, customer: CustomerSession) -> None:
        self.grid = grid
        self.cluster = grid.cluster
        self.ssh = grid.ssh
        self.rpc = grid.rpc
        self.supervisor = grid.supervisor
        self.customer = customer
        self.chain: Chain = customer.chain  # connected to the node directly
        self.provider = Wallet.load(grid.keys.file(grid.cluster)).address
        self.starts = grid.state / "storage" / "starts"
        self.gates = grid.state / "storage" / "gates"

    async def set_up(self) -> None:
        """Provide plenty of credits, and folders for the starts and gates of jobs."""
        for folder in (self.starts, self.gates):
            folder.mkdir(exist_ok=True)
            folder.chmod(0o1777)
        async with self.acting("admin") as admin:
            await admin.mint(self.customer.address, PURSE_WEI)
            await admin.set_constant("setMinimumAmount", CREDIT_WEI // 10)
        await self.customer.writer.approve(PURSE_WEI)

    @asynccontextmanager
    async def acting(self, name: str) -> AsyncIterator[Writer]:
        """Yield the writer of `admin`, `operator`, `customer` or a cluster, with its own connection."""
        async with await Chain.connect(AddressBook.load(self.grid.book)) as chain:
            sender = Sender(chain, Wallet.load(self.grid.keys.file(name)))
            try:
                yield Writer(chain, sender)
            finally:
                await sender.close()

    def second_supervisor(self) -> Supervisor:
        """Another supervisor with the same cluster and key, not started."""
        return self.grid.make_supervisor("second")


@asynccontextmanager
async def chaos_world(state: Path, cluster: str = OFFERS[0].name) -> AsyncIterator[World]:
    """Yield a world that runs for the duration of the context and is always taken down."""
    grid = ChaosGrid(state, cluster)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, grid.down)
        await asyncio.to_thread(grid.up, lambda *_: None)
        settings = CustomerSettings(grid.keys.file("customer"), grid.book)
        customer = await stack.enter_async_context(customer_session(settings))
        world = World(grid, customer)
        stack.push_async_callback(world.supervisor.kill, signal.SIGTERM)
        await world.set_up()
        yield world
