"""A day on a small grid, played on a live chain with live services: two clusters, and jobs in each state.

`tests.tui.record` records the clients' reads.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.client import AsyncGrid, AsyncJob
from deepgrid.lifecycle.job import Hardware, Label, Prices
from deepgrid.lifecycle.states import JobStatus
from tests.appending import push_log
from tests.chain.grid import approve_waiting
from tests.cli.live import CREDIT, Live, Party, party

CUSTOMER_KEY = "5e" * 32  # of the recorded chain only
TRAIN = """\
# Trains a small model on one GPU.
enableLogging: true

resources:
  tasks: 1
  cpusPerTask: 4
  memPerCpu: 4000 # MB
  gpus: 1

steps:
  - name: train
    run:
      resources: {gpusPerTask: 1}
      command: python train.py --epochs 12
"""
RENDER = (
    TRAIN.replace("      resources: {gpusPerTask: 1}\n", "")
    .replace("gpus: 1", "gpus: 0")
    .replace("Trains a small model on one GPU", "Renders frames")
)
SMALL = RENDER.replace("tasks: 1", "tasks: 2").replace("memPerCpu: 4000", "memPerCpu: 1000")
CLUSTERS = {
    "alpha": (
        Hardware((0,) * 6, (32,) * 6, (128_000,) * 6), Prices(0, CREDIT // 20, CREDIT // 100_000),
        (Label("name", "alpha"), Label("os", "linux"), Label("arch", "x86_64"), Label("zone", "north")),
    ),
    "gauss": (
        Hardware((4,) * 4, (64,) * 4, (512_000,) * 4), Prices(CREDIT * 3 // 4, CREDIT // 16, CREDIT // 80_000),
        (Label("name", "gauss"), Label("os", "linux"), Label("gpu", "a100"), Label("interconnect", "infiniband")),
    ),
}  # fmt: skip


def training_log() -> bytes:
    """Return what a training prints: colours, a warning, a line per step."""
    lines = [
        "\x1b[1mtrain.py\x1b[0m  model=resnet18 epochs=12 batch=256 lr=0.1",
        "loading 50000 images ... done in 3.1 s",
        "\x1b[33mwarning: no checkpoint in out/, starting from scratch\x1b[0m",
    ]
    for epoch in range(1, 12):
        loss, accuracy = 2.3 * 0.8**epoch, 100 - 60 * 0.85**epoch
        lines.append(f"epoch {epoch:2}/12  loss {loss:.4f}  accuracy \x1b[32m{accuracy:.1f} %\x1b[0m")
        lines.append(f"  saved out/model-{epoch:02}.pt")
    return "\n".join(lines).encode() + b"\n"


@dataclass
class SampleGrid:
    """The live grid with its parties."""

    live: Live
    chain: Chain
    operator: Party
    clusters: dict[str, Party]
    customer: AsyncGrid
    ahead_s: int = 0

    def later(self, minutes: int) -> None:
        """Move the chain's clock."""
        self.ahead_s += minutes * 60
        self.live.grid.anvil.pass_time(minutes * 60)

    async def submit(self, name: str, text: str, credits: int, **options: object) -> AsyncJob:
        self.later(3)
        return await self.customer.submit(text, credits, name=name, **options)  # type: ignore[arg-type]

    async def start(self, job: AsyncJob, cluster: str) -> None:
        """Assign the job to a cluster, which claims and starts it."""
        where = self.clusters[cluster]
        await self.operator.writer.meta_schedule(job.id, where.address)
        self.later(1)
        await where.writer.claim_next()
        self.later(1)
        await where.writer.set_running(job.id, 0)

    async def end(self, job: AsyncJob, cluster: str, status: JobStatus, minutes: int, error: str = "") -> None:
        self.later(minutes)
        exit_status = 256 if status is JobStatus.FAILED else 0
        await self.clusters[cluster].writer.settle(job.id, status, minutes, error, exit_status)

    async def play(self) -> dict[str, int]:
        """Play the day. Returns the ids of jobs by the situation that they show."""
        writer = self.operator.writer
        for name, (hardware, prices, labels) in CLUSTERS.items():
            who = self.clusters[name]
            await who.writer.register(hardware, prices, labels)
            await approve_waiting(writer, who.address)
        prepared = await self.submit("prepare-data", SMALL, 120)
        await self.start(prepared, "alpha")
        await push_log(self.clusters["alpha"].services, prepared.id, 0, b"50000 images in 12 shards\n", final=True)
        await self.end(prepared, "alpha", JobStatus.FINISHED, 47)
        broken = await self.submit("train-lr-0.5", TRAIN, 400, uses=["gpu=a100"])
        await self.start(broken, "gauss")
        await self.end(broken, "gauss", JobStatus.FAILED, 12, "exit code 1: loss is not a number")
        cancelled = await self.submit("render-test", RENDER, 150)
        await cancelled.cancel()
        small = await self.submit("train-short", TRAIN, 100, uses=["gpu=a100"])
        await self.start(small, "gauss")
        await self.end(small, "gauss", JobStatus.OUT_OF_CREDITS, 60)
        running = await self.submit("train-lr-0.1", TRAIN, 600, uses=["gpu=a100"])
        await self.start(running, "gauss")
        await push_log(self.clusters["gauss"].services, running.id, 0, training_log())
        self.later(35)
        quiet = await self.submit("render-frames", RENDER, 200)
        await self.start(quiet, "alpha")
        assigned = await self.submit("render-titles", RENDER, 200)
        await writer.meta_schedule(assigned.id, self.clusters["alpha"].address)
        pending = await self.submit("train-large", TRAIN.replace("gpus: 1", "gpus: 16"), 900, uses=["gpu=h100"])
        self.later(1)
        why = "no cluster has the label gpu=h100; tried again every minute"
        await self.operator.services.post_notice(pending.id, "waiting", why)
        return {"finished": prepared.id, "running": running.id, "quiet": quiet.id, "pending": pending.id}


@asynccontextmanager
async def sample_grid(live: Live, folder: Path) -> AsyncIterator[SampleGrid]:
    """Yield the parties: two clusters that did not register yet, and a customer of 3,000 credits."""
    key = folder / "customer"
    write_key(key)
    customer = Wallet.load(key).address
    live.grid.anvil.fund(customer)
    async with AsyncExitStack() as stack:
        chain = await stack.enter_async_context(await Chain.connect(live.address_book()))
        wallets = {name: live.grid.new_key(name) for name in CLUSTERS}
        operator = party(chain, Wallet.load(live.grid.operator_key))
        clusters = {name: party(chain, wallet) for name, wallet in wallets.items()}
        for who in (operator, *clusters.values()):
            stack.push_async_callback(who.close)
        await operator.writer.mint(customer, 3000 * CREDIT)
        grid = await stack.enter_async_context(AsyncGrid(key, live.book))
        yield SampleGrid(live, chain, operator, clusters, grid)


def write_key(where: Path) -> None:
    """Write the customer's key."""
    where.touch(0o600)
    where.write_text(CUSTOMER_KEY)
