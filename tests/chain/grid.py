"""A grid in a test: contracts on a development chain, and people with funded keys."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.deploy.deploy import Roles, deploy
from deepgrid.chain.offers import proposal_hash
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.lifecycle.job import Affinity, Hardware, JobDefinition, Label, Prices
from tests.chain.anvil import Anvil

CREDIT = 10**18
HARDWARE = Hardware(gpus_per_node=(2, 2), cpus_per_node=(8, 8), mem_per_node_mb=(16000, 16000))
PRICES = Prices(gpu_wei_per_minute=8 * CREDIT, cpu_wei_per_minute=CREDIT, mem_wei_per_mb_minute=10**14)
LABELS = (Label("zone", "north"), Label("os", "linux"))
DEFINITION = JobDefinition(
    gpus=1, mem_per_cpu_mb=1000, cpus_per_task=2, ntasks=3, definition_hash="ab" * 23, storage_type=4,
    uses=(Label("os", "linux"),), affinity=(Affinity("zone", "!=", "south"), Affinity("compute.gflops", "<", "9")),
)  # fmt: skip
RATE = 146 * CREDIT // 10  # the worked example of the contracts' specification: 14.6 credits per minute


@dataclass(frozen=True)
class Grid:
    """The start of a test. Keys are new files in `keys`; `gather_people` makes writers with them."""

    anvil: Anvil
    book: AddressBook
    keys: Path
    operator_key: Path

    def new_key(self, name: str) -> Wallet:
        wallet = Wallet.create(self.keys / name)
        self.anvil.fund(wallet.address)
        return wallet


@contextmanager
def running_grid(folder: Path, *, keep_state: bool = False) -> Iterator[Grid]:
    """Yield contracts on a node of their own, which ends with the context."""
    folder.mkdir(exist_ok=True)
    anvil = Anvil(folder, keep_state=keep_state)
    anvil.start()
    try:
        yield build(anvil, folder / "keys")
    finally:
        anvil.stop()


def build(anvil: Anvil, keys: Path) -> Grid:
    """Deploy a grid whose operator is also admin and minter."""
    operator = Wallet.create(keys / "operator")
    anvil.fund(operator.address)
    grid = asyncio.run(deploy(anvil.url, operator, Roles.all_of(operator.address)))
    book = AddressBook(
        chain_id=grid.chain_id, rpc_url=anvil.url, meta_scheduler=grid.meta_scheduler, credit=grid.credit,
        provider_manager=grid.provider_manager, first_block=grid.first_block,
        definitions_url="http://127.0.0.1:1", logs_url="http://127.0.0.1:1",
    )  # fmt: skip
    return Grid(anvil, book, keys, keys / "operator")


@dataclass(frozen=True)
class People:
    """Three parties, each with its own sender. The customer has credits, and the provider is approved."""

    chain: Chain
    customer: Writer
    provider: Writer
    operator: Writer

    async def rest(self) -> None:
        """Let the senders forget their transactions, so that they do not repeat those that a reorganisation drops."""
        for one in (self.customer, self.provider, self.operator):
            await one.sender.close()

    async def request(self, locked_wei: int = 200 * CREDIT) -> int:
        return await self.customer.request_job(DEFINITION, locked_wei, "a job", approve_first=locked_wei)

    async def assigned(self, locked_wei: int = 200 * CREDIT) -> int:
        job_id = await self.request(locked_wei)
        await self.operator.meta_schedule(job_id, self.provider.address)
        return job_id

    async def claimed(self, locked_wei: int = 200 * CREDIT) -> int:
        job_id = await self.assigned(locked_wei)
        claimed = await self.provider.claim_next()
        assert claimed is not None
        assert claimed.job_id == job_id
        return job_id

    async def running(self, locked_wei: int = 200 * CREDIT) -> int:
        job_id = await self.claimed(locked_wei)
        await self.provider.set_running(job_id, 0)
        await pass_a_second(self.chain)  # a job that ends in the second of its start costs nothing
        return job_id


async def approve_waiting(operator: Writer, provider: str) -> None:
    """Read the waiting proposal as the operator, and approve exactly that."""
    proposed = await operator.chain.proposal(provider)
    await operator.approve_proposal(provider, bytes(32) if proposed is None else proposal_hash(proposed))
    await pass_a_second(operator.chain)


async def pass_a_second(chain: Chain) -> None:
    """Advance the chain's clock, so that a later request finds the approved prices in force."""
    await chain.rpc.call("evm_increaseTime", 1)
    await chain.rpc.call("evm_mine")


async def gather_people(grid: Grid, chain: Chain, label: str) -> People:
    """Return a customer with 10,000 credits and an approved provider, with keys that no other test uses."""
    operator = Writer(chain, Sender(chain, Wallet.load(grid.operator_key)))
    customer, provider = (Writer(chain, Sender(chain, grid.new_key(f"{label}-{role}"))) for role in ("c", "p"))
    await asyncio.gather(
        operator.mint(customer.address, 10_000 * CREDIT),
        provider.register(HARDWARE, PRICES, LABELS),
    )
    await approve_waiting(operator, provider.address)
    return People(chain, customer, provider, operator)
