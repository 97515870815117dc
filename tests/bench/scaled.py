"""`./run bench scaled`: compares job-shaped flow runs per second on two API servers with Redis and on one server.

Both use the same PostgreSQL, one after the other, and the same in-process worker. The CPU time of each process per run
predicts the rate with more cores: the process with the most CPU time limits it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from deployments.onemachine.daemons.postgres import Postgres
from deployments.onemachine.daemons.prefect_server import PrefectServer
from deployments.onemachine.daemons.processes import ProcessTable
from deployments.scaled.grid import PROCESSES, PrefectServers
from tests.bench.whole_grid import cpu_s
from tests.bench.worker import RUNS, free_ports, in_process, measure

POOL = "deepgrid"
MEASURE = "--measure"  # the argument of the process that starts and carries the runs
CLIENT = "worker"
NAMES = ("postgres", *(name for group in PROCESSES for name in group))


@dataclass(frozen=True)
class Measured:
    """The rate of one kind of Prefect, and the CPU time of each process per run, in ms."""

    runs_per_s: float
    cpu_ms: dict[str, float]

    @property
    def cpu_ms_per_run(self) -> float:
        return sum(self.cpu_ms.values())

    @property
    def limit(self) -> tuple[str, float]:
        """Return the process that limits the rate if each has a core, and the runs per second then.

        PostgreSQL has a process per connection, so it does not count.
        """
        name = max((one for one in self.cpu_ms if one != "postgres"), key=self.cpu_ms.__getitem__)
        return name, 1000 / self.cpu_ms[name]


@contextmanager
def processes(folder: Path) -> Iterator[tuple[ProcessTable, Postgres, Callable[[str], int]]]:
    """Yield PostgreSQL with two empty databases, and a port for each name."""
    ports = dict(zip((*NAMES, "prefect-server"), free_ports(len(NAMES) + 1), strict=True))
    table, postgres = ProcessTable(folder), Postgres(folder / "postgres", ports["postgres"])
    try:
        postgres.prepare()
        table.start(postgres.daemon())
        table.wait_ready(postgres.daemon())
        for name in ("one", "several"):
            postgres.create_database(name)
        yield table, postgres, ports.__getitem__
    finally:
        for name in reversed(table.names()):
            table.stop(name)


def run_worker(table: ProcessTable, server: PrefectServer) -> Measured:
    """Carry the runs in a process of their own, because Prefect reads its settings at import."""
    names = [name for name in table.names() if table.pid(name)]
    settle_s = 5.0  # without registration and the first schedules
    time.sleep(settle_s)
    before = {name: cpu_s(table.pid(name) or 0) for name in names}
    env = {
        **os.environ,
        **server.environment(),
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "PREFECT_LOGGING_LEVEL": "WARNING",
    }
    argv = [sys.executable, "-m", "tests.bench.scaled", MEASURE]
    done = subprocess.run(argv, env=env, stdout=subprocess.PIPE, text=True, check=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    runs = RUNS[POOL]
    cpu_ms = {name: 1000 * (cpu_s(table.pid(name) or 0) - before[name]) / runs for name in names}
    return Measured(figures["runs_per_s"], {**cpu_ms, CLIENT: 1000 * figures["cpu_s"] / runs})


def compare(folder: Path) -> tuple[Measured, Measured]:
    """Measure one server, then several."""
    with processes(folder) as (table, postgres, port):
        one = PrefectServer(folder / "one", port("prefect-server"))
        daemon = one.daemon(postgres.url("one"))
        table.start(daemon)
        table.wait_ready(daemon)
        first = run_worker(table, one)
        table.stop(daemon.name)
        several = PrefectServers.at(folder / "several", port)
        several.start(table, postgres.url("several"))
        return first, run_worker(table, several)


def main() -> None:
    if MEASURE in sys.argv:
        began = time.process_time()
        rate = asyncio.run(measure(POOL, in_process))
        print(json.dumps({"runs_per_s": rate, "cpu_s": time.process_time() - began}))
        return
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # PostgreSQL may run under its own account
        one, several = compare(Path(folder))
    shown = Table("process", "one server", "two API servers", title="CPU time per run of six empty tasks, in ms")
    for name in dict.fromkeys((*one.cpu_ms, *several.cpu_ms)):
        shown.add_row(name, *(f"{each.cpu_ms[name]:.0f}" if name in each.cpu_ms else "" for each in (one, several)))
    shown.add_row("all", f"{one.cpu_ms_per_run:.0f}", f"{several.cpu_ms_per_run:.0f}")
    shown.add_row("runs per second", f"{one.runs_per_s:.1f}", f"{several.runs_per_s:.1f}")
    console = Console(width=100)
    console.print(shown)
    for words, each in (("One server", one), ("Two API servers", several)):
        name, rate = each.limit
        console.print(f"{words}: with a core for each process at most {rate:.0f} runs per second, limited by {name}.")
    print(
        json.dumps(
            {
                "bench": "scaled",
                "ratio": round(several.runs_per_s / one.runs_per_s, 2),
                "runs_per_s": round(several.runs_per_s, 2),
                "cpu_ms_per_run": round(several.cpu_ms_per_run),
                "one_server_runs_per_s": round(one.runs_per_s, 2),
                "cores": os.cpu_count(),
            }
        )
    )


if __name__ == "__main__":
    main()
