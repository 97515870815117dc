"""`./run bench market [JOBS PROVIDERS]`: the real operator process assigns many pending jobs to simulated providers.

The chain has one block per second. All jobs are pending before the first round. The clock runs until the chain shows
all of them as assigned.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.sorting import TaskRunSort
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from rich.table import Table

from tests.bench.simulated_market import (
    WITHIN_S,
    SimulatedMarket,
    operator_process,
    schedule_rounds,
    services,
    simulated_market,
)
from tests.bench.whole_grid import cpu_s
from tests.chain.anvil import Anvil
from tests.chain.grid import Grid, build
from tests.temporary_prefect import temporary_prefect
from tests.waiting import until

JOBS, PROVIDERS = 10_000, 500


@dataclass(frozen=True)
class Sample:
    """The operator's costs so far."""

    at: float
    cpu_s: float
    rpc: float
    block: int
    sent: int


@dataclass(frozen=True)
class Outcome:
    """The costs of assigning all jobs."""

    seconds: float
    blocks: int
    transactions: int
    gas: int
    rpc: float
    cpu_s: float
    rss_mb: float
    exit_s: float
    tasks: dict[str, float]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def figures(port: int) -> dict[str, float]:
    """Return the operator's metrics."""
    async with httpx.AsyncClient(trust_env=False) as http:
        text = (await http.get(f"http://127.0.0.1:{port}/metrics")).raise_for_status().text
    return {one.name: one.value for family in text_string_to_metric_families(text) for one in family.samples}


async def sample(market: SimulatedMarket, pid: int, port: int) -> Sample:
    rpc = (await figures(port))["deepgrid_operator_rpc_calls_total"]
    block = (await market.chain.head()).number
    sent, _ = await market.chain.transaction_counts(market.operator.address)
    return Sample(time.monotonic(), cpu_s(pid), rpc, block, sent)


def gas_of(grid: Grid, sender: str, first: int, last: int) -> int:
    """Return the gas of the transactions of `sender` in these blocks."""
    receipts = [
        one for number in range(first, last + 1) for one in grid.anvil.call("eth_getBlockReceipts", hex(number))
    ]
    return sum(int(one["gasUsed"], 16) for one in receipts if one["from"].lower() == sender.lower())


async def task_seconds() -> dict[str, float]:
    """Return the seconds in each kind of task so far."""
    spent: dict[str, float] = {}
    async with get_client() as client:
        for run in await client.read_task_runs(sort=TaskRunSort.END_TIME_DESC, limit=200):
            spent[run.name] = spent.get(run.name, 0.0) + run.total_run_time.total_seconds()
    return spent


def memory_mb(pid: int) -> float:
    """Return the highest resident memory so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024


async def assign_all(market: SimulatedMarket, folder: Path, jobs: int, providers: int) -> Outcome:
    grid = market.grid
    port, services_port = free_port(), free_port()
    url = f"http://127.0.0.1:{services_port}"
    book = grid.book.model_copy(update={"definitions_url": url, "logs_url": url}).save(folder / "grid.json")
    await market.register(providers)
    with services(folder, book, services_port):
        async with operator_process(grid, folder, book, port) as process:
            await market.request(jobs)
            grid.anvil.mine_every_second()
            before = await sample(market, process.pid, port)
            await schedule_rounds(active=True)

            async def done() -> bool:
                return (await figures(port))["deepgrid_assigned_jobs_total"] >= jobs

            await until(done, WITHIN_S)
            after = await sample(market, process.pid, port)
            assert await market.pending(jobs) == 0
            tasks, rss = await task_seconds(), memory_mb(process.pid)
            began = time.monotonic()
            os.kill(process.pid, signal.SIGTERM)
            await asyncio.to_thread(process.wait, 60)
            exit_s = time.monotonic() - began
            process.poll = lambda: None  # type: ignore[method-assign] # it ended as it should
    return Outcome(
        after.at - before.at, after.block - before.block, after.sent - before.sent,
        gas_of(grid, market.operator.address, before.block + 1, after.block), after.rpc - before.rpc,
        after.cpu_s - before.cpu_s, rss, exit_s, tasks,
    )  # fmt: skip


def show(console: Console, jobs: int, providers: int, out: Outcome) -> None:
    table = Table("figure", "value", title=f"{jobs:,} jobs, {providers:,} providers")
    rows: dict[str, Any] = {
        "seconds until all are assigned": f"{out.seconds:.1f}", "blocks meanwhile": out.blocks,
        "transactions": out.transactions, "gas per job": f"{out.gas / jobs:,.0f}",
        "requests to the node per job": f"{out.rpc / jobs:.3f}",
        "CPU seconds of the operator": f"{out.cpu_s:.1f} ({out.cpu_s / out.seconds:.0%} of one CPU)",
        "highest memory of the operator, MB": f"{out.rss_mb:.0f}",
        "seconds from SIGTERM to the end": f"{out.exit_s:.1f}",
    }  # fmt: skip
    for name, value in rows.items():
        table.add_row(name, str(value))
    console.print(table)
    spent = Table("task", "seconds", title="Where the time goes")
    for name, seconds in sorted(out.tasks.items(), key=lambda item: -item[1]):
        spent.add_row(name, f"{seconds:.2f}")
    console.print(spent)


async def measure(anvil: Anvil, folder: Path, jobs: int, providers: int) -> None:
    grid = await asyncio.to_thread(build, anvil, folder / "keys")
    async with simulated_market(grid) as market:
        out = await assign_all(market, folder, jobs, providers)
    show(Console(width=100), jobs, providers, out)
    print(
        json.dumps(
            {
                "bench": "market", "jobs": jobs, "providers": providers,
                "assigned_per_s": round(jobs / out.seconds, 1), "rpc_per_job": round(out.rpc / jobs, 3),
                "rss_mb": round(out.rss_mb), "gas_per_job": round(out.gas / jobs), "exit_s": round(out.exit_s, 1),
            }
        )
    )  # fmt: skip


def main() -> None:
    jobs, providers = (int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 2 else (JOBS, PROVIDERS)
    with tempfile.TemporaryDirectory(prefix="dg-bench-") as folder:
        anvil = Anvil(Path(folder))
        anvil.start()
        try:
            with temporary_prefect():
                asyncio.run(measure(anvil, Path(folder), jobs, providers))
        finally:
            anvil.stop()


if __name__ == "__main__":
    main()
