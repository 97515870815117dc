"""`./run bench capacity`: a simulated day of a grid with 1,000 providers.

Contracts, operator, services and books are real. The clusters, their supervisors and the customers are simulated; their
transactions are real. The jobs are offered evenly, at `--offered` jobs per second of this machine's clock. The chain's
clock runs faster, so that the day ends when the jobs do. `--jobs 1000000` takes some hours. The last line is JSON:

* `jobs_per_s`: settled jobs per second, from the first tenth of the jobs to the last one
* `jobs_per_cpu_s`: jobs per second of CPU time of all processes together; other work on the machine hardly changes it
* `gas_per_job`, `call_data_bytes_per_job`, `compressed_bytes_per_job`: of all transactions
* `rss_mb`, `rss_growth`: the operator's memory at the end, and its ratio to that at the middle of the day
* `jain`: Jain's index over customers, of work received by the end of the offers divided by work asked for
* `backlog_s`: seconds of this machine's clock from the last request to the last assignment

Exit status 1: a job is not settled or not reconciled, the books differ, or memory grew by more than MOST_GROWTH.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.market import free_port
from tests.bench.simulated_day.day_books import DayBooks
from tests.bench.simulated_day.day_chain import DayClock
from tests.bench.simulated_day.day_customers import DayCustomers
from tests.bench.simulated_day.day_plan import DayPlan
from tests.bench.simulated_day.day_providers import DayProviders
from tests.bench.simulated_market import ROOT, SimulatedMarket, services, simulated_market
from tests.bench.whole_grid import cpu_s
from tests.chain.anvil import Anvil
from tests.chain.grid import build
from tools.simulation.measures import jain

JOBS, OFFERED_PER_S, MOST_GROWTH = 30_000, 120.0, 1.25
STALL_S = 600.0  # without a settled job, the day has failed
LONGEST_CLAIM_MINUTES = 7 * 24 * 60


@dataclass
class Process:
    """A measured process: its memory at times of the day, and its CPU time since the start of the day."""

    pid: int
    cpu_began_s: float = 0.0
    rss_mb: list[float] = field(default_factory=list)

    def look(self) -> None:
        """Note its memory now."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        self.rss_mb.append(int(next(line.split()[1] for line in lines if line.startswith("VmRSS"))) / 1024)

    def cpu_ms(self, jobs: int) -> float:
        """Return its CPU milliseconds per job."""
        return 1000 * (cpu_s(self.pid) - self.cpu_began_s) / jobs

    @property
    def growth(self) -> float:
        """Return the memory at the end, divided by that at the middle of the day."""
        return self.rss_mb[-1] / self.rss_mb[len(self.rss_mb) // 2]


@dataclass
class Day:
    """The parties of a day, and the seconds at which a tenth, two tenths ... of the jobs were settled."""

    plan: DayPlan
    clock: DayClock
    customers: DayCustomers
    providers: DayProviders
    books: DayBooks
    processes: dict[str, Process] = field(default_factory=dict)
    tenths: list[float] = field(default_factory=list)
    fairness: float = 0.0
    offered_s: float = 0.0
    assigned_s: float = 0.0

    async def run(self) -> None:
        """Run the day until all jobs are settled and reconciled."""
        began = time.monotonic()
        for process in self.processes.values():
            process.cpu_began_s = cpu_s(process.pid)
        parts = [self.clock.mine(), self.providers.serve(), self.books.serve()]
        tasks = [asyncio.create_task(part) for part in parts]
        offer = asyncio.create_task(self._offer(began))
        watch = asyncio.create_task(self._watch(began))
        try:
            done, _ = await asyncio.wait([*tasks, watch], return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()
            await offer
            tasks.pop().cancel()
            await self.clock.next_block()
            await self.books.reconcile_until(self.clock.now + 1)
        finally:
            for one in (*tasks, offer, watch):
                one.cancel()

    async def _offer(self, began: float) -> None:
        await self.customers.offer()
        self.offered_s = time.monotonic() - began
        shares = (self.providers.received[who] / asked for who, asked in self.customers.asked.items())
        self.fairness = jain(shares)

    async def _watch(self, began: float) -> None:
        """Note the times of the tenths and the memory. Returns when all jobs are settled."""
        last, since = 0, time.monotonic()
        while self.providers.settled < self.plan.jobs:
            await self.clock.next_block()
            if self.providers.settled != last:
                last, since = self.providers.settled, time.monotonic()
            assert time.monotonic() - since < STALL_S, f"no job was settled for {STALL_S:.0f} s: {self._state()}"
            if not self.assigned_s and self.providers.assigned >= self.plan.jobs:
                self.assigned_s = time.monotonic() - began
            while last >= (len(self.tenths) + 1) * self.plan.jobs / 10:
                self.tenths.append(time.monotonic() - began)
                for one in self.processes.values():
                    one.look()
                print(f"{self.tenths[-1]:6.0f} s: {self._state()}", file=sys.stderr)

    def _state(self) -> str:
        memory = ", ".join(f"{name} {one.rss_mb[-1]:.0f} MB" for name, one in self.processes.items() if one.rss_mb)
        done = f"{self.customers.requested:,} requested, {self.providers.assigned:,} assigned"
        return f"{done}, {self.providers.settled:,} settled, {self.books.reconciled:,} reconciled; {memory}"

    def figures(self) -> dict[str, float | int | str]:
        """Return the figures of the day."""
        jobs, costs = self.plan.jobs, self.clock.costs
        operator = self.processes["operator"]
        return {
            "bench": "capacity",
            "jobs": jobs,
            "providers": self.plan.providers,
            "jobs_per_s": round(0.9 * jobs / (self.tenths[-1] - self.tenths[0]), 1),
            "jobs_per_cpu_s": round(1000 / sum(one.cpu_ms(jobs) for one in self.processes.values()), 1),
            "gas_per_job": round(costs.gas / jobs),
            "rss_mb": round(operator.rss_mb[-1]),
            "rss_growth": round(operator.growth, 2),
            "jain": round(self.fairness, 3),
            "backlog_s": round(max(0.0, self.assigned_s - self.offered_s), 1),
            "offered_per_s": self.plan.offered_per_s,
            "speed": round(self.plan.speed, 1),
            "transactions_per_job": round(costs.transactions / jobs, 3),
            "call_data_bytes_per_job": round(costs.call_data_bytes / jobs),
            "nonzero_bytes_per_job": round(costs.nonzero_bytes / jobs),
            "compressed_bytes_per_job": round(costs.compressed_bytes / jobs),
            "fullest_block": round(costs.fullest, 2),
            **{f"{name}_cpu_ms_per_job": round(one.cpu_ms(jobs), 2) for name, one in self.processes.items()},
            "services_rss_mb": round(self.processes["services"].rss_mb[-1]),
            "node_kb_per_job": round(1024 * _grown(self.processes["node"]) / (0.9 * jobs), 1),
        }


def _grown(one: Process) -> float:
    return one.rss_mb[-1] - one.rss_mb[0]


@asynccontextmanager
async def operator(book: Path, key_file: Path, folder: Path) -> AsyncIterator[int]:
    """Run the operator's process, and yield its number."""
    argv = [
        sys.executable,
        "-m",
        "tests.bench.simulated_day.day_operator",
        str(book),
        str(key_file),
        str(folder / "operator"),
    ]
    log = folder / "operator.log"
    with log.open("wb") as output:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=ROOT)
    try:
        yield process.pid
        assert process.poll() is None, f"the operator ended:\n{log.read_text()[-3000:]}"
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 60)


async def whole_day(anvil: Anvil, folder: Path, plan: DayPlan) -> tuple[dict[str, float | int | str], list[str]]:
    """Set up the grid and run the day. Returns its figures, and what is wrong."""
    grid = await asyncio.to_thread(build, anvil, folder / "keys")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    book = grid.book.model_copy(update={"definitions_url": url, "logs_url": url}).save(folder / "grid.json")
    with services(folder, book, port) as served:
        async with simulated_market(grid) as market:
            day = await prepared(market, plan)
            anvil.call("evm_setAutomine", False)
            await day.clock.start()
            async with operator(book, grid.operator_key, folder) as pid:
                numbers = {"operator": pid, "services": served.pid, "node": anvil.pid, "parties": os.getpid()}
                day.processes.update({name: Process(number) for name, number in numbers.items()})
                await day.run()
                found = day.figures(), complaints(day)
            await asyncio.gather(day.customers.close(), day.providers.close(), market.operator.sender.close())
            return found


async def prepared(market: SimulatedMarket, plan: DayPlan) -> Day:
    """Register the clusters and customers of a day."""
    # In compressed time, seconds of this machine are minutes: no claim may time out.
    await market.operator.set_constant("setClaimJobTimeout", LONGEST_CLAIM_MINUTES)
    clock = DayClock(market.chain, plan.speed)
    customers = DayCustomers(market, plan, clock)
    providers = DayProviders(market, clock, customers)
    await customers.open()
    await providers.open()
    return Day(plan, clock, customers, providers, DayBooks(market.chain, clock, providers))


def complaints(day: Day) -> list[str]:
    """Return what is wrong with a day, except its rate, which depends on the machine."""
    jobs, found = day.plan.jobs, list(day.books.differences)
    if day.books.reconciled != jobs:
        found.append(f"{day.books.reconciled:,} of {jobs:,} jobs are in the books")
    if day.processes["operator"].growth > MOST_GROWTH:
        found.append(f"the operator's memory grew {day.processes['operator'].growth:.2f} times")
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--jobs", type=int, default=JOBS)
    options.add_argument("--providers", type=int, default=1_000)
    options.add_argument("--offered", type=float, default=OFFERED_PER_S, help="jobs per second of this machine's clock")
    given = options.parse_args()
    plan = DayPlan(given.jobs, given.providers, offered_per_s=given.offered)
    with tempfile.TemporaryDirectory(prefix="dg-bench-") as folder:
        anvil = Anvil(Path(folder))
        anvil.start()
        try:
            figures, wrong = asyncio.run(whole_day(anvil, Path(folder), plan))
        finally:
            anvil.stop()
    for one in wrong:
        print(one, file=sys.stderr)
    print(json.dumps(figures))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
