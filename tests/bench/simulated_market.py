"""A chain with many simulated providers and customers, and the real operator process on a real Prefect server.

The providers register and are approved. They claim nothing: the measurement ends when all jobs are assigned.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.exceptions import ObjectNotFound
from prefect.settings import PREFECT_API_URL

import blocks
from deepgrid.chain.batches import Request
from deepgrid.chain.client import Chain
from deepgrid.chain.offers import proposal_hash
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.lifecycle.job import Hardware, Prices
from deepgrid.lifecycle.states import JobStatus
from deployments.onemachine.daemons.probes import answers
from tests.chain.grid import CREDIT, DEFINITION, Grid
from tests.waiting import until

NAME = "bench"
ROOT = Path(__file__).parents[2]
WITHIN_S = 600.0
AT_ONCE, JOBS_PER_REQUEST = 25, 100
CUSTOMERS = 10
LOCKED_WEI = 100 * CREDIT
CPUS = 64  # per provider, so that there is room for all jobs at once
JOB = replace(DEFINITION, gpus=0, ntasks=1, cpus_per_task=1, mem_per_cpu_mb=100, uses=(), affinity=())


@dataclass
class SimulatedMarket:
    """The parties on one chain."""

    grid: Grid
    chain: Chain
    operator: Writer

    async def register(self, count: int, cpus_of: Callable[[int], int] = lambda _: CPUS) -> None:
        """Register and approve `count` providers with different prices. `cpus_of` returns the CPUs of each."""
        for first in range(0, count, AT_ONCE):
            numbers = range(first, min(count, first + AT_ONCE))
            await asyncio.gather(*(self._register(number, cpus_of(number)) for number in numbers))
        waiting = [one.address for one in await self.chain.providers() if one.waiting_for_approval]
        for first in range(0, count, AT_ONCE):
            await asyncio.gather(*map(self._approve, waiting[first : first + AT_ONCE]))

    async def request(self, count: int) -> None:
        """Request `count` pending jobs of several customers."""
        writers = [self._writer(f"customer-{number}") for number in range(CUSTOMERS)]
        each = -(-count // CUSTOMERS)
        for number, writer in enumerate(writers):
            jobs = min(each, count - number * each)
            if jobs <= 0:
                break
            await self.operator.mint(writer.address, jobs * LOCKED_WEI)
            await writer.approve(jobs * LOCKED_WEI)
            wanted = [Request(JOB, LOCKED_WEI, "a job")] * jobs
            for first in range(0, jobs, JOBS_PER_REQUEST):
                await writer.request_jobs(wanted[first : first + JOBS_PER_REQUEST])
            await writer.sender.close()

    async def pending(self, count: int) -> int:
        """Return how many of the first `count` jobs wait for a cluster."""
        jobs = await self.chain.jobs(range(1, count + 1))
        return sum(job.status is JobStatus.PENDING for job in jobs)

    async def _register(self, number: int, cpus: int) -> None:
        writer = self._writer(f"provider-{number}")
        price = CREDIT // 10 + number * 10**12
        await writer.register(Hardware((0,), (cpus,), (cpus * 1000,)), Prices(0, price, 10**9), ())
        await writer.sender.close()

    async def _approve(self, address: str) -> None:
        proposed = await self.chain.proposal(address)
        assert proposed is not None
        await self.operator.approve_proposal(address, proposal_hash(proposed))

    def _writer(self, name: str) -> Writer:
        return Writer(self.chain, Sender(self.chain, self.grid.new_key(name)))


@asynccontextmanager
async def simulated_market(grid: Grid) -> AsyncIterator[SimulatedMarket]:
    """Yield the parties of a grid whose operator has all roles."""
    async with await Chain.connect(grid.book) as chain:
        operator = Writer(chain, Sender(chain, Wallet.load(grid.operator_key)))
        yield SimulatedMarket(grid, chain, operator)


@contextmanager
def services(folder: Path, book: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run the services' process with a separate database."""
    env = {
        **os.environ,
        "DEEPGRID_BOOK": str(book),
        "DEEPGRID_SERVICES_DATABASE": f"sqlite:///{folder}/services.sqlite",
    }
    argv = ["services", "serve", "--port", str(port), "--secret-file", str(folder / "secret")]
    with _process(argv, env, folder / "services.log") as process:
        deadline = time.monotonic() + WITHIN_S
        while not answers(port, "/v1/health"):
            assert time.monotonic() < deadline, "the services do not start"
            time.sleep(0.2)
        yield process


@asynccontextmanager
async def operator_process(
    grid: Grid, folder: Path, book: Path, metrics_port: int
) -> AsyncIterator[subprocess.Popen[bytes]]:
    """`dps operator serve` with the deployments of the repository. `meta_schedule` is paused."""
    wallet = blocks.Wallet(address=Wallet.load(grid.operator_key).address, key_file=grid.operator_key)
    role = blocks.Operator(
        grid=blocks.Grid(address_book=book), wallet=wallet, state=folder / "operator", metrics_port=metrics_port
    )  # fmt: skip
    await role.asave(NAME, overwrite=True)
    env = {**os.environ, "PREFECT_API_URL": PREFECT_API_URL.value() or "", "OPERATOR": NAME}
    with _process(["operator", "serve", NAME], env, folder / "operator.log") as process:
        await until(_pool_is_there)
        argv = ["--no-prompt", "deploy", "--all", "--prefect-file", "deployments/operator/prefect.yaml"]
        await asyncio.to_thread(
            subprocess.run, [sys.executable, "-m", "prefect", *argv], env=env, cwd=ROOT, check=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        await schedule_rounds(active=False)
        yield process


async def schedule_rounds(*, active: bool) -> None:
    """Pause or resume `meta_schedule`."""
    async with get_client() as client:
        found = await client.read_deployment_by_name(f"meta_schedule/{NAME}")
        for schedule in found.schedules:
            await client.update_deployment_schedule(found.id, schedule.id, active=active)


async def _pool_is_there() -> bool:
    """Return whether the operator has created its pool.

    The pool for slow flows has no worker here, so this creates it.
    """
    async with get_client() as client:
        try:
            await client.read_work_pool(f"operator-{NAME}")
        except ObjectNotFound:
            return False
        await client.create_work_pool(WorkPoolCreate(name="processes", type="process"))
        return True


@contextmanager
def _process(argv: list[str], env: dict[str, str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "deepgrid.cli", *argv],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=env, cwd=ROOT,
        )  # fmt: skip
        try:
            yield process
            assert process.poll() is None, log.read_text()[-3000:]
        finally:
            process.terminate()
            process.wait(60)
