"""`./run bench uploads`: signed uploads per second of definitions that differ in their commands, or in their steps.

`dps services serve` runs as its own process with default limits, on a development chain. Several customers upload at
once. The comparison is a full check of such scripts by bash and shellcheck, on all processors, in the same run.
Exit status 1: fewer than 20 uploads per second, or a p99 of 2 s or more.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.sbatch import StoragePaths, render
from deepgrid.services.client import ServicesClient
from deepgrid.services.script_check import check_script
from deepgrid.workflow import Definition, Step, StepRun
from tests.chain.grid import Grid, gather_people, running_grid
from tests.cli.live import services_of

CUSTOMERS, UPLOADS_EACH, AT_ONCE_EACH, FULL_CHECKS = 4, 75, 4, 8
LEAST_PER_S, MOST_P99_MS = 20.0, 2000.0


@dataclass(frozen=True)
class Rates:
    """Results: uploads per second, their times in seconds, uploads of other shapes and full checks per second."""

    per_s: float
    each_s: tuple[float, ...]
    shapes_per_s: float
    full_per_s: float

    @property
    def p99_ms(self) -> float:
        return 1000 * sorted(self.each_s)[min(len(self.each_s) - 1, int(0.99 * len(self.each_s)))]

    @property
    def ratio(self) -> float:
        return self.per_s / self.full_per_s


def definition() -> Definition:
    """Return a definition with a command of its own, in three steps."""
    steps = [
        {"name": name, "run": {"command": f"{name} {secrets.token_hex(8)}"}} for name in ("echo", "true", "printf")
    ]
    resources = {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 50, "gpus": 0}
    return Definition.model_validate({"resources": resources, "steps": steps})


def other_shape() -> Definition:
    """Return a definition with one to five steps, whose names occur once."""
    names = [f"step {secrets.token_hex(4)}" for _ in range(1 + secrets.randbelow(5))]
    return definition().model_copy(
        update={"steps": tuple(Step(name=name, run=StepRun(command="true")) for name in names)}
    )


async def uploaded(customer: ServicesClient, count: int, make: Callable[[], Definition]) -> list[float]:
    """Upload this many definitions, a fixed number at once. Returns the seconds of each."""
    places = asyncio.Semaphore(AT_ONCE_EACH)

    async def one() -> float:
        async with places:
            job, started = make(), time.monotonic()
            await customer.upload(job)
            return time.monotonic() - started

    return await asyncio.gather(*(one() for _ in range(count)))


async def by_all(customers: list[ServicesClient], make: Callable[[], Definition]) -> tuple[float, list[float]]:
    """Upload as all customers at once. Returns the uploads per second, and the seconds of each."""
    started = time.monotonic()
    each = await asyncio.gather(*(uploaded(one, UPLOADS_EACH, make) for one in customers))
    return len(customers) * UPLOADS_EACH / (time.monotonic() - started), [seconds for one in each for seconds in one]


def full_checks_per_s() -> float:
    """Return how many such scripts bash and shellcheck check per second, one per processor at a time."""
    scripts = [render(definition(), StoragePaths()) for _ in range(FULL_CHECKS)]
    started = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(check_script, scripts))
    return FULL_CHECKS / (time.monotonic() - started)


async def measure(grid: Grid, url: str) -> Rates:
    async with AsyncExitStack() as stack:
        chain = await stack.enter_async_context(await Chain.connect(grid.book))
        customers = []
        for label in (f"bench{number}" for number in range(CUSTOMERS)):
            await (await gather_people(grid, chain, label)).rest()
            account = Wallet.load(grid.keys / f"{label}-c").account
            customers.append(await stack.enter_async_context(ServicesClient.of(grid.book, account, url)))
        await asyncio.gather(*(uploaded(one, 1, definition) for one in customers))  # connections, compiled templates
        per_s, each_s = await by_all(customers, definition)
        shapes_per_s, _ = await by_all(customers, other_shape)
        return Rates(per_s, tuple(each_s), shapes_per_s, full_checks_per_s())


def report(found: Rates) -> int:
    """Print the table, and the figures as JSON. Returns the exit status."""
    table = Table("checks of definitions whose commands differ", "per second", "p99 ms", "ratio")
    table.add_row("bash and shellcheck alone, full script", f"{found.full_per_s:.1f}", "", "1.0")
    table.add_row(
        f"uploads of {CUSTOMERS} customers", f"{found.per_s:.1f}", f"{found.p99_ms:.0f}", f"{found.ratio:.1f}"
    )
    table.add_row("the same, with other steps in each", f"{found.shapes_per_s:.1f}", "", "")
    Console(stderr=True, width=110).print(table)
    figures = {
        "bench": "uploads",
        "ratio": round(found.ratio, 2),
        "per_s": round(found.per_s, 1),
        "p99_ms": round(found.p99_ms),
        "shapes_per_s": round(found.shapes_per_s, 1),
        "cores": os.cpu_count(),
    }
    print(json.dumps(figures))
    return 0 if found.per_s >= LEAST_PER_S and found.p99_ms < MOST_P99_MS else 1


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_grid(folder / "chain") as grid, services_of(grid.book, folder) as url:
            found = asyncio.run(measure(grid, url))
    return report(found)


if __name__ == "__main__":
    sys.exit(main())
