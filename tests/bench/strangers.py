"""`./run bench strangers`: measures how long honest parties wait while strangers attack the services.

`dps services serve` runs as its own process behind nginx, with default limits, on a development chain. Each attack has
a process and source addresses of its own, for 20 s. Meanwhile an honest customer uploads, a provider fetches a
definition, a page reads the chain, and a customer follows a log, each once per second from its own address.
The ratio compares all attacks with the time before them.
Exit status 1: an honest p99 is 2 s or more, an honest request failed, or a process has 400 MB or more.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from eth_account.signers.local import LocalAccount
from rich.console import Console
from rich.table import Table

from deepgrid.chain.client import Chain
from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.values import coded_id
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.errors import GridError
from deepgrid.lifecycle.job import JobDefinition
from deepgrid.services.client import ServicesClient
from deepgrid.workflow import Definition
from tests.appending import push_log
from tests.bench.stranger_attacks import ATTACKS, Target, client_at
from tests.chain.grid import CREDIT, Grid, gather_people, running_grid
from tests.cli.live import services_behind_proxy
from tests.services.support import a_job

FOR_S = 20
MOST_P99_S, MOST_RSS_MB = 2.0, 400
ALONE = "alone"
KINDS = ("nginx", "services serve", "check_worker", "graphql.operations", "script_check")


@dataclass
class Served:
    """The durations of honest requests by their kind, and the failed ones."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    failed: Counter[str] = field(default_factory=Counter)
    met: str = ""

    def p99(self, kind: str) -> float:
        ordered = sorted(self.seconds[kind])
        return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]

    @property
    def longest_p99(self) -> float:
        return max(self.p99(kind) for kind in self.seconds)


@dataclass(frozen=True)
class Honest:
    """The honest parties, with a job whose definition the provider fetches and whose log the customer follows."""

    customer: ServicesClient
    provider: ServicesClient
    page: Callable[[], Awaitable[None]]
    job_id: int
    definition_hash: str

    async def upload(self) -> None:
        job = {"resources": {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 50, "gpus": 0}}
        steps = [{"run": {"command": f"echo {secrets.token_hex(8)}"}}]
        await self.customer.upload(Definition.model_validate(job | {"steps": steps}))

    async def fetch(self) -> None:
        await self.provider.fetch_definition(self.job_id, self.definition_hash)


async def once_a_second(do: Callable[[], Awaitable[None]], kind: str, served: Served) -> None:
    """Start one request per second, independent of the duration of earlier ones."""

    async def one() -> None:
        started = time.monotonic()
        try:
            await do()
        except (GridError, AssertionError) as error:
            served.failed[f"{kind}: {error}"[:120]] += 1
        served.seconds.setdefault(kind, []).append(time.monotonic() - started)

    async with asyncio.TaskGroup() as group:
        for _ in range(FOR_S):
            group.create_task(one())
            await asyncio.sleep(1)


async def followed(honest: Honest, offset: int, served: Served) -> int:
    """Push one line per second as the provider, and follow the log. Returns the size of the log."""
    for number in range(FOR_S):
        line, started = f"line {number}\n".encode(), time.monotonic()
        try:
            reading = asyncio.create_task(honest.customer.read_log(honest.job_id, offset, wait_s=20))
            await push_log(honest.provider, honest.job_id, offset, line)
            assert (await reading).data == line
        except (GridError, AssertionError) as error:
            served.failed[f"follow: {error}"[:120]] += 1
        offset += len(line)
        took_s = time.monotonic() - started
        served.seconds.setdefault("follow", []).append(took_s)
        await asyncio.sleep(max(0.0, 1 - took_s))
    return offset


async def serve_honest(honest: Honest, offset: int) -> tuple[Served, int]:
    """Let all honest parties work for a while. Returns what they got, and the size of the log."""
    served = Served()
    async with asyncio.TaskGroup() as group:
        for kind, do in (("upload", honest.upload), ("fetch", honest.fetch), ("page", honest.page)):
            group.create_task(once_a_second(do, kind, served))
        following = group.create_task(followed(honest, offset, served))
    return served, following.result()


@contextlib.asynccontextmanager
async def attacked(name: str, target: Target) -> AsyncIterator[Counter[str]]:
    """Attack for the duration of the context. Afterwards the counter has the attack's results."""
    argv = [sys.executable, "-m", "tests.bench.stranger_attacks", name, target.to_json()]
    pipe, met = asyncio.subprocess.PIPE, Counter[str]()
    process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe)
    assert process.stdin is not None and process.stdout is not None
    try:
        assert (await process.stdout.readline()).strip() == b"begun"
        yield met
        process.stdin.close()
        met.update(json.loads(await process.stdout.readline()))
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def watch_memory(largest: dict[str, float]) -> None:
    """Keep the largest resident memory of each kind of process of the services, in MB."""
    while True:
        for command, mb in descendants(os.getpid()):
            kind = next((kind for kind in KINDS if kind in command), None)
            if kind is not None:
                largest[kind] = max(largest.get(kind, 0.0), mb)
        await asyncio.sleep(1)


def descendants(pid: int) -> list[tuple[str, float]]:
    """Return the commands and the resident memory (MB) of all descendants of this process."""
    parents, facts = dict[int, int](), dict[int, tuple[str, float]]()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line)
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            parents[int(folder.name)] = int(status["PPid"])
            facts[int(folder.name)] = command, int(status.get("VmRSS", "0 kB").split()[0]) / 1000
    found, level = [], {pid}
    while level:
        level = {child for child, parent in parents.items() if parent in level}
        found += [facts[child] for child in level]
    return found


async def measure(grid: Grid, folder: Path, url: str, grpc: str) -> tuple[dict[str, Served], dict[str, float]]:
    """Return what the honest parties got alone and under each attack, and the memory of the services' processes."""
    found: dict[str, Served] = {}
    largest: dict[str, float] = {}
    book = grid.book.save(folder / "attacked.json")
    watching = asyncio.create_task(watch_memory(largest))
    async with contextlib.AsyncExitStack() as stack:
        honest = await _honest(grid, url, stack)
        found[ALONE], offset = await serve_honest(honest, 0)
        for number, name in enumerate(ATTACKS):
            target = Target(url, grpc, str(book), str(grid.keys / "abuser-c"), f"127.0.{10 + number}")
            async with attacked(name, target) as met:
                found[name], offset = await serve_honest(honest, offset)
            found[name].met = ", ".join(f"{count} {what}" for what, count in sorted(met.items()))
    watching.cancel()
    return found, largest


async def _honest(grid: Grid, url: str, stack: contextlib.AsyncExitStack) -> Honest:
    async with await Chain.connect(grid.book) as chain:
        people = await gather_people(grid, chain, "honest")
        await (await gather_people(grid, chain, "abuser")).rest()
        customer = await stack.enter_async_context(_client(grid, url, "honest-c", "127.0.1.1"))
        provider = await stack.enter_async_context(_client(grid, url, "honest-p", "127.0.1.2"))
        definition_hash = await customer.upload(a_job())
        figures = JobDefinition(
            gpus=0, mem_per_cpu_mb=128, cpus_per_task=1, ntasks=1, definition_hash=definition_hash
        )  # fmt: skip
        locked = 200 * CREDIT
        job_id = await people.customer.request_job(figures, locked, "a job", approve_first=locked)
        await people.operator.meta_schedule(job_id, people.provider.address)
        await people.provider.claim_next()
        await people.rest()
    page = await stack.enter_async_context(client_at("127.0.1.3"))
    call = {"to": grid.book.meta_scheduler, "data": interface("MetaScheduler").encode("getMany", [coded_id(job_id)])}

    async def read() -> None:
        calls = [{"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []},
                 {"jsonrpc": "2.0", "id": 2, "method": "eth_call", "params": [call, "latest"]}]  # fmt: skip
        answer = await page.post(f"{url}/rpc", json=calls)
        assert answer.status_code == 200, answer.text
        assert all("result" in one for one in answer.json()), answer.text

    return Honest(customer, provider, read, job_id, definition_hash)


@contextlib.asynccontextmanager
async def _client(grid: Grid, url: str, name: str, source: str) -> AsyncIterator[ServicesClient]:
    account: LocalAccount = Wallet.load(grid.keys / name).account
    async with ServicesClient(url, account, grid.book.chain_id, grid.book.meta_scheduler) as client:
        await client._http.aclose()
        client._http = client_at(source)
        yield client


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running_grid(folder / "chain") as grid, services_behind_proxy(grid.book, folder) as edge:
            found, largest = asyncio.run(measure(grid, folder, edge.url, edge.grpc))
    return report(found, largest)


def report(found: dict[str, Served], largest: dict[str, float]) -> int:
    """Print the table and the figures as JSON. Returns the exit status."""
    console = Console(stderr=True)
    kinds = list(found[ALONE].seconds)
    table = Table("20 s of", *(f"{kind} p99 s" for kind in kinds), "failed", "the attack met", title="Honest parties")
    for name, served in found.items():
        figures = (f"{served.p99(kind):.2f}" for kind in kinds)
        table.add_row(name, *figures, str(served.failed.total()), served.met)
    console.print(table)
    for name, served in found.items():
        for what, count in served.failed.items():
            console.print(f"{name}: {count} failed: {what}")
    console.print("MB: " + ", ".join(f"{kind} {mb:.0f}" for kind, mb in sorted(largest.items())))
    attacks = [served for name, served in found.items() if name != ALONE]
    p99, failed = max(served.longest_p99 for served in attacks), sum(served.failed.total() for served in found.values())
    rss = max(largest.values())
    rows = {
        name: {"p99_s": round(served.longest_p99, 3), "failed": served.failed.total()} for name, served in found.items()
    }
    print(json.dumps({
        "ratio": round(p99 / found[ALONE].longest_p99, 2), "honest_p99_s": round(p99, 3), "honest_failed": failed,
        "rss_mb": round(rss), "attacks": rows,
    }))  # fmt: skip
    return 0 if p99 < MOST_P99_S and not failed and rss < MOST_RSS_MB else 1


if __name__ == "__main__":
    sys.exit(main())
