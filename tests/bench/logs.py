"""`./run bench logs [TRANSPORT]`: 500 followers of one log, and one of a fast log, at the same time.

The services run as their own process behind nginx, on a development chain. A provider appends 10 lines per second to
one log with 500 followers, and 2,000 lines per second to a log with one follower. Each line contains its number and
time. The followers run in their own processes, count missing and misplaced lines, and measure each line's delay.

TRANSPORT selects how followers read: `grpc` (streams) or `http` (long polls). Many long polls of one customer exceed
the default limits of requests per signer and address, so these are raised for `http`. Streams need no such change. Exit
status 1: a line was lost, the p99 delay is 2 s or more, or the service used 300 MB or more.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.compat.compat_context import CompatSettings
from deepgrid.compat.existing_clients import serving_existing_clients
from deepgrid.errors import GridError
from deepgrid.lifecycle.job import JobDefinition
from deepgrid.services.app import ServicesSettings
from deepgrid.services.client import ServicesClient
from deepgrid.services.serve import serve
from tests.appending import push_log
from tests.bench.log_transports import TRANSPORTS
from tests.chain.anvil import Anvil
from tests.chain.grid import CREDIT, Grid, People, build, gather_people
from tests.services.edge_support import running_edge, short_folder

FOLLOWERS, PROCESSES = 500, 2
MEASURED_S = 30
APPENDS_PER_S = 10
FAST_LINES = 200  # per append
FILL = b" " * 60
MOST_P99_S, MOST_RSS_MB = 2.0, 300
START_WITHIN_S, END_WITHIN_S = 120, 120
LABEL = "logs"


class Tally:
    """Results of some followers: delays in hundredths of a second, lines per second of the clock, lost lines."""

    def __init__(self) -> None:
        self.delays: Counter[int] = Counter()
        self.per_second: Counter[int] = Counter()
        self.lost = 0

    def line(self, line: bytes, expected: int) -> int:
        """Count a line. Returns the number of the next."""
        now = time.time()
        number, written_at = line.split()[:2]
        self.delays[int((now - float(written_at)) * 100)] += 1
        self.per_second[int(now)] += 1
        self.lost += abs(int(number) - expected)
        return int(number) + 1

    def percentile_s(self, part: float) -> float:
        left = part * self.delays.total()
        for hundredths, count in sorted(self.delays.items()):
            left -= count
            if left <= 0:
                return hundredths / 100
        return 0.0

    def add(self, text: str) -> None:
        """Add the JSON of another process."""
        delays, per_second, lost = json.loads(text)
        self.delays.update({int(key): count for key, count in delays.items()})
        self.per_second.update({int(key): count for key, count in per_second.items()})
        self.lost += lost

    def json(self) -> str:
        return json.dumps([self.delays, self.per_second, self.lost])


# -- the followers, in their own processes ---------------------------------------------------


async def follow(name: str, url: str, book: AddressBook, key: Path, job_id: int, count: int) -> None:
    """Follow a log to its end, `count` times at once. Prints a line when all have the first line, then the results."""
    tally, begun = Tally(), asyncio.Semaphore(0)
    account = Wallet.load(key).account

    async def one(number: int) -> None:
        expected = 0
        async for line in TRANSPORTS[name].lines(url, book, account, job_id, number):
            if line.startswith(b"end "):
                tally.lost += int(line.split()[1]) - expected
                return
            if line == b"begin":
                begun.release()
            else:
                expected = tally.line(line, expected)
        tally.lost += 1  # the log ended without its last line

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(one(number))
        for _ in range(count):
            await begun.acquire()
        print("begun", flush=True)
    print(tally.json(), flush=True)


@contextlib.asynccontextmanager
async def followers(*argv: object) -> AsyncIterator[Callable[[], Awaitable[str]]]:
    """Run a process of followers that have all begun. Yields a function that waits for its result."""
    words = [sys.executable, "-m", "tests.bench.logs", "--follow", *map(str, argv)]
    process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE, limit=2**24)
    assert process.stdout is not None
    output = process.stdout

    async def line() -> str:
        return (await asyncio.wait_for(output.readline(), END_WITHIN_S)).decode()

    try:
        assert await line() == "begun\n", "the followers did not begin"
        yield line
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await process.wait()


# -- the provider -----------------------------------------------------------------------------


async def write(provider: ServicesClient, job_id: int, offset: int, lines: int) -> None:
    """Append lines at a steady rate, then the end."""
    started, number = time.monotonic(), 0
    for tick in range(MEASURED_S * APPENDS_PER_S):
        await asyncio.sleep(max(0.0, started + tick / APPENDS_PER_S - time.monotonic()))
        text = b"".join(b"%d %.3f%s\n" % (number + n, time.time(), FILL) for n in range(lines))
        offset = await push_log(provider, job_id, offset, text)
        number += lines
    await push_log(provider, job_id, offset, b"end %d\n" % number, final=True)


async def measure(name: str, url: str, address: str, file: Path, grid: Grid) -> Tally:
    async with await Chain.connect(grid.book) as chain:
        people = await gather_people(grid, chain, LABEL)
        slow, fast = [await claimed_job(people) for _ in range(2)]
    account = Wallet.load(grid.keys / f"{LABEL}-p").account
    common = (name, address, file, grid.keys / f"{LABEL}-c")
    tally = Tally()
    async with ServicesClient.of(grid.book, account, url) as provider, contextlib.AsyncExitStack() as stack:
        await first_line(provider, slow)
        await first_line(provider, fast)
        groups = [(slow, FOLLOWERS // PROCESSES)] * PROCESSES + [(fast, 1)]
        opened = (stack.enter_async_context(followers(*common, job_id, count)) for job_id, count in groups)
        results = [await one for one in opened]
        await asyncio.gather(write(provider, slow, 6, 1), write(provider, fast, 6, FAST_LINES))
        for result in results:
            tally.add(await result())
    return tally


async def first_line(provider: ServicesClient, job_id: int) -> None:
    assert await push_log(provider, job_id, 0, b"begin\n") == 6


async def claimed_job(people: People) -> int:
    definition = JobDefinition(gpus=0, mem_per_cpu_mb=128, cpus_per_task=1, ntasks=1, definition_hash="0" * 64)
    job_id = await people.customer.request_job(definition, 200 * CREDIT, "a job", approve_first=200 * CREDIT)
    await people.operator.meta_schedule(job_id, people.provider.address)
    await people.provider.claim_next()
    return job_id


# -- the service --------------------------------------------------------------------------------


async def serve_for(name: str, book: Path, folder: Path) -> None:
    """Serve with the settings that the transport needs."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    settings = ServicesSettings(
        f"sqlite:///{folder}/services.sqlite", folder / "secret", sockets=folder / "s", book=book,
        limits=TRANSPORTS[name].limits,
    )  # fmt: skip
    existing_clients = partial(serving_existing_clients, settings=CompatSettings())
    await serve(settings, existing_clients=existing_clients)


@contextlib.contextmanager
def service(name: str, book: Path, folder: Path) -> Iterator[tuple[str, str, int]]:
    """Run the services for this transport. Yields URL, address for followers and process id."""
    log = folder / "services.log"
    argv = [sys.executable, "-m", "tests.bench.logs", "--serve", name, str(book), str(folder)]
    with log.open("wb") as file:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        deadline = time.monotonic() + START_WITHIN_S
        while "the services listen " not in log.read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise GridError(f"the services do not start: {log.read_text()}")
            time.sleep(0.05)
        with short_folder() as of_nginx, running_edge(of_nginx, folder / "s", TRANSPORTS[name].edge) as edge:
            yield edge.url, TRANSPORTS[name].address(edge), process.pid
    finally:
        process.terminate()
        process.wait(START_WITHIN_S)


def most_rss_mb(pid: int) -> int:
    """Return the largest resident size of the process so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


def processor_s(pid: int) -> float:
    """Return the processor time of the process so far, with its start."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    if sys.argv[1:2] == ["--follow"]:
        name, url, book, key, job_id, count = sys.argv[2:]
        asyncio.run(follow(name, url, AddressBook.load(Path(book)), Path(key), int(job_id), int(count)))
        return 0
    if sys.argv[1:2] == ["--serve"]:
        name, book, folder_name = sys.argv[2:]
        uvloop.run(serve_for(name, Path(book), Path(folder_name)))  # as `dps services serve` does
        return 0
    name = sys.argv[1] if len(sys.argv) > 1 else next(iter(TRANSPORTS))
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        anvil = Anvil(folder)
        anvil.start()
        try:
            grid = build(anvil, folder / "keys")
            file = grid.book.save(folder / "book.json")
            with service(name, file, folder) as (url, address, pid):
                tally = asyncio.run(measure(name, url, address, file, grid))
                rss_mb, used_s = most_rss_mb(pid), processor_s(pid)
        finally:
            anvil.stop()
    return report(name, tally, rss_mb, used_s)


def report(name: str, tally: Tally, rss_mb: int, used_s: float) -> int:
    """Print the table, and the figures as JSON. Returns the exit status."""
    table = Table("lines", "p50 s", "p99 s", "longest s", "lost", "lines per second at most", "RSS MB", title=name)
    figures = (tally.percentile_s(0.5), tally.percentile_s(0.99), max(tally.delays) / 100)
    rate = max(tally.per_second.values())
    table.add_row(f"{tally.delays.total():,}", *map(str, figures), str(tally.lost), f"{rate:,}", str(rss_mb))
    Console(stderr=True).print(table)
    p99 = tally.percentile_s(0.99)
    per_line_us = round(used_s * 1e6 / max(1, tally.delays.total()), 1)
    figures_by_name = {"delay_p99_s": p99, "rss_mb": rss_mb, "lost": tally.lost, "lines_per_s": rate}
    print(json.dumps(figures_by_name | {"processor_us_per_line": per_line_us}))
    return 0 if p99 < MOST_P99_S and rss_mb < MOST_RSS_MB and not tally.lost else 1


if __name__ == "__main__":
    sys.exit(main())
