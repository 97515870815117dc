"""`./run bench graphql`: compares submissions per second by GraphQL with signed uploads of the same definitions.

`dps services serve` runs as its own process with default limits, on a development chain. Both ways send equally many
definitions, and equally many at once. In one part all scripts differ, so shellcheck checks each. In the other part,
sweeps differ in one variable and share a check. The commands of the two ways differ only in a random word, so they
share no checks. GraphQL requests come from several source addresses, because one address may not submit so many. Exit
status 1: GraphQL is less than half as fast in either part.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import secrets
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.services.client import ServicesClient
from deepgrid.workflow import Definition
from tests.bench.stranger_attacks import client_at
from tests.chain.grid import Grid, gather_people, running_grid
from tests.cli.live import services_of

DISTINCT, SWEPT, AT_ONCE = 30, 300, 8
LEAST_RATIO = 0.5
SUBMIT = "mutation Submit($job: Job!) { submit(job: $job) }"
SOURCES = [f"127.0.5.{number}" for number in range(1, 6)]
Send = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass(frozen=True)
class Run:
    """The submissions of one way: the total seconds, and the seconds of each."""

    seconds: float
    each_s: tuple[float, ...]

    @property
    def rate(self) -> float:
        return len(self.each_s) / self.seconds

    @property
    def p99_ms(self) -> float:
        return 1000 * sorted(self.each_s)[min(len(self.each_s) - 1, int(0.99 * len(self.each_s)))]


def distinct_jobs() -> list[dict[str, Any]]:
    """Return jobs whose scripts all differ."""
    return [_job(f"echo {secrets.token_hex(8)}", 0) for _ in range(DISTINCT)]


def swept_jobs() -> list[dict[str, Any]]:
    """Return jobs that differ in one variable."""
    command = f"echo {secrets.token_hex(8)} $N"
    return [_job(command, number) for number in range(SWEPT)]


def _job(command: str, number: int) -> dict[str, Any]:
    return {
        "resources": {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 50, "gpus": 0},
        "env": [{"key": "N", "value": str(number)}],
        "steps": [{"name": "work", "run": {"command": command}}],
    }


async def timed(send: Send, jobs: list[dict[str, Any]]) -> Run:
    """Send all jobs, a fixed number at once."""
    places, each = asyncio.Semaphore(AT_ONCE), []

    async def one(job: dict[str, Any]) -> None:
        async with places:
            started = time.monotonic()
            await send(job)
            each.append(time.monotonic() - started)

    started = time.monotonic()
    await asyncio.gather(*map(one, jobs))
    return Run(time.monotonic() - started, tuple(each))


async def measure(grid: Grid, url: str) -> dict[str, tuple[Run, Run]]:
    """Signed uploads and GraphQL, for each part."""
    async with AsyncExitStack() as stack:
        chain = await stack.enter_async_context(await Chain.connect(grid.book))
        await (await gather_people(grid, chain, "bench")).rest()
        account = Wallet.load(grid.keys / "bench-c").account
        signed = await stack.enter_async_context(ServicesClient.of(grid.book, account, url))
        strangers = itertools.cycle([await stack.enter_async_context(client_at(source)) for source in SOURCES])

        async def upload(job: dict[str, Any]) -> None:
            await signed.upload(Definition.model_validate(job))

        async def submit(job: dict[str, Any]) -> None:
            client, body = next(strangers), {"query": SUBMIT, "variables": {"job": job}}
            while True:  # retries when the service asks for it, like the client of signed uploads
                answer = (await client.post(f"{url}/graphql", json=body)).json()
                if answer["data"]:
                    return
                pause_s = answer["errors"][0]["extensions"].get("retry_after_s")
                assert pause_s is not None, answer
                await asyncio.sleep(pause_s * random.uniform(1.0, 1.5))

        for send in (upload, submit):  # connections, compiled templates
            await timed(send, [_job(f"echo {secrets.token_hex(8)}", 0) for _ in SOURCES])
        return {
            name: (await timed(upload, jobs()), await timed(submit, jobs()))
            for name, jobs in (("distinct scripts", distinct_jobs), ("sweeps", swept_jobs))
        }


def report(found: dict[str, tuple[Run, Run]]) -> int:
    """Print the table, and the figures as JSON. Returns the exit status."""
    table = Table("definitions", "way", "per second", "p99 ms", "ratio", title=f"Submissions, {AT_ONCE} at once")
    ratios = []
    for name, (signed, graphql) in found.items():
        ratios.append(graphql.rate / signed.rate)
        table.add_row(name, "signed upload", f"{signed.rate:.1f}", f"{signed.p99_ms:.0f}", "")
        table.add_row("", "GraphQL", f"{graphql.rate:.1f}", f"{graphql.p99_ms:.0f}", f"{ratios[-1]:.2f}")
    Console(stderr=True, width=110).print(table)
    figures = {
        "bench": "graphql",
        "ratio": round(min(ratios), 2),
        "p99_ms": round(max(graphql.p99_ms for _, graphql in found.values())),
        "ratio_distinct": round(ratios[0], 2),
        "ratio_sweeps": round(ratios[1], 2),
        "per_s": round(found["sweeps"][1].rate, 1),
    }
    print(json.dumps(figures))
    return 0 if min(ratios) >= LEAST_RATIO else 1


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_grid(folder / "chain") as grid, services_of(grid.book, folder) as url:
            found = asyncio.run(measure(grid, url))
    return report(found)


if __name__ == "__main__":
    sys.exit(main())
