"""`./run bench sessions`: 100 shells in running jobs. Each echoes one byte per 50 ms.

Two customers hold the shells, in eight jobs of a real Slurm, on a development chain. The bytes pass the services behind
nginx, the supervisor's host of sessions, SSH and `srun --overlap`. The services and the host run in processes of their
own, with default limits. The comparison is as many shells by OpenSSH on the same login node, in the same run. They run
before and after the sessions, and all wait for the same terminals and programs.

The share of CPU counts the host's process: what sessions cost a supervisor, as a share of one processor. Exit
status 1: an echo was lost, the p99 is 60 ms or more above OpenSSH's, or the host used 30 % or more.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import uvloop
from rich.console import Console
from rich.table import Table

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.sender import Sender
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.chain.writer import Writer
from deepgrid.lifecycle.job import Job, JobKey
from deepgrid.provider.session import ProviderSession
from deepgrid.provider.tunnels.tunnel_host import TunnelHost
from deepgrid.services.client import ServicesClient
from deepgrid.services.edge.proxy_file import EdgeLimits
from deepgrid.services.tunnels.tunnel_frames import StreamRequest
from deepgrid.slurm.cluster import Cluster
from deepgrid.slurm.ssh.login import Login
from deepgrid.slurm.ssh.login_settings import LoginSettings
from deepgrid.slurm.supervision.monitor import SlurmMonitor
from deployments.onemachine.slurm import ClusterSpec
from tests.bench.echo_shells import ECHO, OPENING_AT_ONCE, PERIOD_S, SHELLS, WITHIN_S, Shell, by_openssh, echo
from tests.bench.whole_grid import cpu_s
from tests.chain.grid import CREDIT, Grid, gather_people, running_grid
from tests.cli.live import services_of
from tests.provider.tunnels.tunnel_support import live_job, opened
from tests.services.edge_support import running_edge, short_folder
from tests.slurm.support import SMALL, Box, bash, running_box

JOBS_EACH = 4
MOST_EXTRA_MS, MOST_CPU_SHARE = 60.0, 0.30
SPEC = ClusterSpec("bench", nodes=2, cpus_per_node=8, mem_per_node_mb=4000, private=False)


@asynccontextmanager
async def by_sessions(customers: Sequence[tuple[ServicesClient, list[Job]]]) -> AsyncIterator[list[Shell]]:
    """Yield that many shells in jobs, each in a session of its own."""
    async with AsyncExitStack() as stack:

        async def start(client: ServicesClient, job: Job, places: asyncio.Semaphore) -> Shell:
            async with places:
                tunnel = await stack.enter_async_context(await opened(live_job(job, client)))
                asked = StreamRequest(kind="shell", command=("sh", "-c", ECHO), rows=24, columns=80, term="xterm")
                stream = await tunnel.stream(asked)

                async def read() -> bytes:
                    piece = await stream.read()
                    return piece[1] if piece is not None else b""

                shell = Shell(stream.write, read)
                await shell.ready()
                return shell

        starting = []
        for number in range(SHELLS):
            client, jobs = customers[number % len(customers)]
            starting.append((client, jobs[number // len(customers) % len(jobs)]))
        places = {client: asyncio.Semaphore(OPENING_AT_ONCE) for client, _ in customers}
        async with asyncio.timeout(WITHIN_S):
            shells = await asyncio.gather(*(start(client, job, places[client]) for client, job in starting))
        yield shells


def serve_host(book_file: Path, key_file: Path, url: str, login: LoginSettings, job_ids: Sequence[int]) -> None:
    """Serve the sessions of these jobs until the process is ended."""
    uvloop.run(_serve_host(AddressBook.load(book_file), Wallet.load(key_file), url, login, job_ids))


async def _serve_host(
    book: AddressBook, wallet: Wallet, url: str, login: LoginSettings, job_ids: Sequence[int]
) -> None:
    async with await Chain.connect(book) as chain, ServicesClient.of(book, wallet.account, url) as services:
        monitor = SlurmMonitor(Cluster(Login(login), login))
        keys = [key_of(book, await chain.job(job_id)) for job_id in job_ids]
        for key in keys:
            monitor.watch(key)
        session = SimpleNamespace(
            address=wallet.address, services=services, monitor=monitor, runs_jobs=True,
            settings=SimpleNamespace(login=login, sessions=True),
            sender=SimpleNamespace(wallet=wallet), chain=chain,
            key_of=lambda job: key_of(book, job), carries=keys.__contains__,
        )  # fmt: skip
        await TunnelHost(cast(ProviderSession, session)).serve()


def key_of(book: AddressBook, job: Job) -> JobKey:
    return JobKey(book.chain_id, book.meta_scheduler, job.id, job.claimed_at)


@contextmanager
def host(*given: Any) -> Iterator[int]:
    """Run the host of sessions in a process of its own. Yields the process's number."""
    process = multiprocessing.get_context("spawn").Process(target=serve_host, args=given)
    process.start()
    try:
        assert process.pid is not None
        yield process.pid
    finally:
        process.terminate()
        process.join(WITHIN_S)


# -- the run --------------------------------------------------------------------------------------------------------


@dataclass
class Found:
    """Delays in seconds of all echoes, and the host's share of one processor."""

    sessions: list[float] = field(default_factory=list)
    openssh: list[float] = field(default_factory=list)
    cpu_share: float = 0.0

    @property
    def extra_ms(self) -> float:
        return percentile_ms(self.sessions, 0.99) - percentile_ms(self.openssh, 0.99)


def percentile_ms(delays: Sequence[float], part: float) -> float:
    return 1000 * sorted(delays)[min(len(delays) - 1, int(part * len(delays)))]


async def running_jobs(grid: Grid, chain: Chain, box: Box) -> dict[str, list[int]]:
    """Start the jobs of both customers, in Slurm and on the chain. Returns their numbers by the customer's key."""
    people, numbers, login = await gather_people(grid, chain, "bench"), {}, Login(box.settings)
    other = Writer(chain, Sender(chain, grid.new_key("other-c")))
    await people.operator.mint(other.address, 10_000 * CREDIT)
    for name, customer in (("bench-c", people.customer), ("other-c", other)):
        numbers[name] = [await replace(people, customer=customer).running() for _ in range(JOBS_EACH)]
    await other.sender.close()
    await people.rest()
    cluster = Cluster(login, box.settings)
    for job in await chain.jobs([one for jobs in numbers.values() for one in jobs]):
        await cluster.submit(key_of(grid.book, job), bash("sleep 3600"), replace(SMALL, time_limit_minutes=60))
    await login.close()
    return numbers


async def measure(grid: Grid, chain: Chain, box: Box, url: str, numbers: dict[str, list[int]], pid: int) -> Found:
    found = Found()
    async with AsyncExitStack() as stack:
        customers = []
        for name, jobs in numbers.items():
            account = Wallet.load(grid.keys / name).account
            client = await stack.enter_async_context(ServicesClient.of(grid.book, account, url))
            customers.append((client, await chain.jobs(jobs)))
        await with_openssh(box, found)
        async with by_sessions(customers) as shells:
            used_s, began = cpu_s(pid), time.monotonic()
            await echo(shells)
            found.cpu_share = (cpu_s(pid) - used_s) / (time.monotonic() - began)
            found.sessions += [delay for one in shells for delay in one.delays]
        await with_openssh(box, found)
    return found


async def with_openssh(box: Box, found: Found) -> None:
    async with by_openssh(box.settings) as shells:
        await echo(shells)
        found.openssh += [delay for one in shells for delay in one.delays]


async def run(grid: Grid, box: Box, url: str, book_file: Path) -> Found:
    async with await Chain.connect(grid.book) as chain:
        numbers = await running_jobs(grid, chain, box)
        jobs = [one for jobs in numbers.values() for one in jobs]
        with host(book_file, grid.keys / "bench-p", url, box.settings, jobs) as pid:
            return await measure(grid, chain, box, url, numbers, pid)


def report(found: Found) -> int:
    """Print the table, and the figures as JSON. Returns the exit status."""
    table = Table(f"{SHELLS} shells, one byte each {1000 * PERIOD_S:.0f} ms", "median ms", "p99 ms", "worst ms", "CPU")
    for name, delays, share in (
        ("OpenSSH", found.openssh, ""),
        ("sessions in jobs", found.sessions, f"{found.cpu_share:.0%}"),
    ):
        table.add_row(name, *(f"{percentile_ms(delays, part):.1f}" for part in (0.5, 0.99, 1.0)), share)
    Console(stderr=True, width=110).print(table)
    figures = {
        "bench": "sessions",
        "echo_p99_ms": round(percentile_ms(found.sessions, 0.99), 1),
        "ssh_p99_ms": round(percentile_ms(found.openssh, 0.99), 1),
        "cpu_share": round(found.cpu_share, 3),
        "shells": SHELLS,
    }
    print(json.dumps(figures))
    return 0 if found.extra_ms < MOST_EXTRA_MS and found.cpu_share < MOST_CPU_SHARE else 1


def main() -> int:
    with tempfile.TemporaryDirectory() as name, short_folder() as of_nginx, running_box(SPEC) as box:
        folder = Path(name)
        with (
            running_grid(folder / "chain") as grid,
            services_of(grid.book, folder, "--sockets", str(of_nginx / "s")),
            running_edge(of_nginx, of_nginx / "s", EdgeLimits()) as edge,
        ):
            found = uvloop.run(run(grid, box, edge.url, grid.book.save(folder / "book.json")))
    return report(found)


if __name__ == "__main__":
    sys.exit(main())
