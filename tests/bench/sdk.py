"""`./run bench sdk`: compares jobs per second of one `map` of the Python client and of a `dps submit --watch` per job.

Both use the same chain, services and simulated cluster, one after the other, with at most 50 jobs at once. The cluster
settles each job at once, so the figures measure the clients. A run lasts from the start of its first process to the
last settlement on chain. The table also shows the map's chain requests per job, and its memory. Exit status 1: the map
is less than 5 times as fast.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.client import AsyncGrid
from tests.chain.anvil import Anvil
from tests.chain.grid import CREDIT, Grid, approve_waiting, build
from tests.cli.live import HARDWARE, LABELS, PRICES, Dps, services_of
from tests.client.batch_cluster import BatchCluster, batch_cluster

MAPPED, SINGLE, AT_ONCE, CREDITS = 1000, 100, 50, 100
LEAST_RATIO = 5.0
WORKFLOW = """
resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 128, gpus: 0}
steps:
  - run: {command: 'echo "$N"'}
"""


@dataclass(frozen=True)
class Run:
    """A run of one client: jobs, and seconds to the last settlement."""

    jobs: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds


@dataclass(frozen=True)
class Costs:
    """The map's costs: requests to the node, and memory."""

    requests: int
    rss_mb: float


# -- the map, in its own process -------------------------------------------------------------


async def mapped(key: str, book: str) -> Costs:
    """Map the workflow over all parameters, and wait for all jobs."""
    requests = 0

    def count(asked: int, *_: object) -> None:
        nonlocal requests
        requests += asked

    async with AsyncGrid(key, book) as grid:
        (await grid._connect()).chain.rpc._http._asked = count
        sweep = await grid.map(WORKFLOW, [{"N": n} for n in range(MAPPED)], credits=CREDITS, at_once=AT_ONCE, key="x")
        async for _ in sweep.as_completed():
            pass
    return Costs(requests, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


async def map_process(key: Path, book: Path) -> Costs:
    argv = [sys.executable, "-m", "tests.bench.sdk", "--map", str(key), str(book)]
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0
    return Costs(**json.loads(out))


# -- the measurement -------------------------------------------------------------------------


async def dps_processes(dps: Dps) -> None:
    """Submit and watch single jobs, each by a process of its own."""
    places = asyncio.Semaphore(AT_ONCE)
    file = dps.home / "job.yaml"
    file.write_text(WORKFLOW)

    async def one() -> None:
        async with places:
            process = await dps.start("submit", file, "--credits", str(CREDITS), "--watch")
            try:
                _, err = await process.communicate()  # without a timeout: 50 at once are slow on a busy machine
                assert process.returncode == 0, err.decode()
            finally:
                if process.returncode is None:
                    process.kill()

    async with asyncio.TaskGroup() as group:
        for _ in range(SINGLE):
            group.create_task(one())


async def timed(cluster: BatchCluster, jobs: int, work: Callable[[], Awaitable[object]]) -> Run:
    """Run one client until its jobs are settled."""
    before, started = cluster.settled, time.monotonic()
    await work()
    assert cluster.settled - before == jobs
    return Run(jobs, cluster.last_at - started)


async def measure(grid: Grid, folder: Path, book: Path) -> tuple[Run, Run, Costs]:
    """Measure the map, then the processes."""
    async with await Chain.connect(grid.book) as chain:
        operator = Writer(chain, Sender(chain, Wallet.load(grid.operator_key)))
        provider = Writer(chain, Sender(chain, grid.new_key("provider")))
        await provider.register(HARDWARE, PRICES, LABELS)
        await approve_waiting(operator, provider.address)
        for name in ("map", "dps"):
            await operator.mint(grid.new_key(name).address, 10 * MAPPED * CREDIT)
        costs: list[Costs] = []

        async def run_map() -> None:
            costs.append(await map_process(grid.keys / "map", book))

        async with batch_cluster(chain, operator, provider) as cluster:
            ours = await timed(cluster, MAPPED, run_map)
            single = await timed(cluster, SINGLE, lambda: dps_processes(Dps(folder, book, grid.keys / "dps")))
        await asyncio.gather(operator.sender.close(), provider.sender.close())
    return ours, single, costs[0]


def report(ours: Run, single: Run, costs: Costs) -> int:
    """Print the table, and the figures as JSON. Returns the exit status."""
    ratio = ours.rate / single.rate
    table = Table("client", "jobs", "seconds", "jobs/s", "ratio", "chain requests/job", "MB",
                  title=f"Jobs of a customer, {AT_ONCE} at once, to their settlement")  # fmt: skip
    each = costs.requests / ours.jobs
    rows = (
        ("dps submit --watch", single, "", ""),
        ("map", ours, f"{each:.2f}", f"{costs.rss_mb:.0f}"),
    )
    for name, run, requests, memory in rows:
        figures = (f"{run.jobs:,}", f"{run.seconds:.1f}", f"{run.rate:.2f}", f"{run.rate / single.rate:.1f}")
        table.add_row(name, *figures, requests, memory)
    Console(stderr=True, width=110).print(table)
    figures_by_name = {
        "bench": "sdk", "ratio": round(ratio, 1), "rpc_per_job": round(each, 2), "rss_mb": round(costs.rss_mb),
        "jobs_per_s": round(ours.rate, 2), "dps_jobs_per_s": round(single.rate, 2),
    }  # fmt: skip
    print(json.dumps(figures_by_name))
    return 0 if ratio >= LEAST_RATIO else 1


def main() -> int:
    if sys.argv[1:2] == ["--map"]:
        print(json.dumps(vars(asyncio.run(mapped(*sys.argv[2:])))))
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        anvil = Anvil(folder)
        anvil.start()
        try:
            grid = build(anvil, folder / "keys")
            with services_of(grid.book, folder) as url:
                book = grid.book.model_copy(update={"definitions_url": url, "logs_url": url}).save(folder / "grid.json")
                found = asyncio.run(measure(grid, folder, book))
        finally:
            anvil.stop()
    return report(*found)


if __name__ == "__main__":
    sys.exit(main())
