"""`./run bench services-abuse`: duration of an honest customer's uploads while others abuse the services.

`dps services serve` runs as its own process with default limits, on a development chain. The abuse comes from another
process: 500 slow connections, 100 requests per second of strangers, and one customer who uploads the most expensive
accepted definitions, eight at once. Each party has its own source addresses in 127.0.0.0/8. The honest customer
uploads one new definition per second, first alone and then under abuse. The ratio compares the two.
Exit status 1: the honest p99 under abuse is 2 s or more, or an honest upload failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from eth_account import Account
from eth_account.signers.local import LocalAccount
from rich.console import Console
from rich.table import Table

from deepgrid.chain.book import AddressBook
from deepgrid.chain.client import Chain
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.services.messages import Upload
from deepgrid.services.signing.request_signing import Domain, sign
from deepgrid.workflow import Definition, canonical, hash_definition
from tests.chain.anvil import Anvil
from tests.chain.grid import Grid, build, gather_people
from tests.cli.live import services_of

ALONE_S, ABUSED_S = 20, 60
SLOW, STRANGERS_PER_S, EXPENSIVE_AT_ONCE = 500, 100, 8
EXPENSIVE_STEPS = 270  # close to the limit for steps in containers
MOST_P99_S = 2.0
STRANGE_CONNECTIONS = 40
HONEST, CUSTOMER = "127.0.1.1", "127.0.2.1"
SLOW_SOURCES = [f"127.0.3.{n}" for n in range(1, 6)]
STRANGE_SOURCES = [f"127.0.4.{n}" for n in range(1, 6)]
HEAD = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n"


@dataclass
class Party:
    """A client with a key and a source address that sends signed requests."""

    url: str
    domain: Domain
    account: LocalAccount
    client: httpx.AsyncClient

    async def send(self, method: str, path: str, body: bytes = b"") -> int:
        """The status of the answer; 0 without an answer."""
        headers = sign(self.account, self.domain, method, path, body, int(time.time()))
        try:
            return (await self.client.request(method, self.url + path, content=body, headers=headers)).status_code
        except httpx.HTTPError:
            return 0

    async def upload(self, steps: list[dict[str, object]]) -> int:
        """Upload a definition with these steps. Returns the status of the answer."""
        resources = {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 50, "gpus": 0}
        content = canonical(Definition.model_validate({"resources": resources, "steps": steps}))
        salt = secrets.token_bytes(32)
        body = Upload(salt=salt.hex(), definition=content.decode()).model_dump_json().encode()
        return await self.send("PUT", f"/v1/definitions/{hash_definition(salt, content)}", body)


def client_at(source: str) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(verify=False, local_address=source)
    return httpx.AsyncClient(transport=transport, timeout=30.0, trust_env=False)


@dataclass
class Honest:
    """The durations of the honest customer's uploads, and the refused ones."""

    seconds: list[float] = field(default_factory=list)
    failed: int = 0

    def percentile(self, part: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


async def upload_once_a_second(party: Party, for_s: int) -> Honest:
    """Start one upload per second, however long the others take."""
    found = Honest()

    async def one() -> None:
        started = time.monotonic()
        status = await party.upload([{"run": {"command": f"echo {secrets.token_hex(8)}"}}])
        found.seconds.append(time.monotonic() - started)
        found.failed += status != 204

    async with asyncio.TaskGroup() as group:
        for _ in range(for_s):
            group.create_task(one())
            await asyncio.sleep(1)
    return found


# -- the abuse, in its own process --------------------------------------------------------


async def abuse(url: str, book: AddressBook, key: Path) -> None:
    """Abuse the services until standard input ends. Prints when it has begun, and what it met."""
    met: Counter[str] = Counter()
    domain = Domain(book.chain_id, book.meta_scheduler)
    where = urlsplit(url)
    assert where.hostname is not None and where.port is not None
    begun = asyncio.Semaphore(0)
    requests = iter(_of_strangers(url, domain))
    tasks = [
        asyncio.create_task(_slow(where.hostname, where.port, source, begun, met))
        for source, _ in zip(itertools.cycle(SLOW_SOURCES), range(SLOW), strict=False)
    ]
    for _ in range(SLOW):
        await begun.acquire()
    async with client_at(CUSTOMER) as own:
        customer = Party(url, domain, Wallet.load(key).account, own)
        tasks += [asyncio.create_task(_expensive(customer, met)) for _ in range(EXPENSIVE_AT_ONCE)]
        places = itertools.islice(itertools.cycle(STRANGE_SOURCES), STRANGE_CONNECTIONS)
        tasks += [asyncio.create_task(_strange(where.hostname, where.port, place, requests, met)) for place in places]
        print("begun", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    print(json.dumps(met), flush=True)


async def _slow(host: str, port: int, source: str, begun: asyncio.Semaphore, met: Counter[str]) -> None:
    """A connection that sends one byte of its head per second, and is opened again whenever it is closed."""
    first = True
    while True:
        with contextlib.suppress(OSError):
            _reader, writer = await asyncio.open_connection(host, port, local_addr=(source, 0))
            writer.write(HEAD)
            if first:
                first = False
                begun.release()
            while not writer.is_closing():
                writer.write(b"a")
                await writer.drain()
                await asyncio.sleep(1)
        met["slow connections closed"] += 1
        await asyncio.sleep(0.5)


async def _expensive(customer: Party, met: Counter[str]) -> None:
    while True:
        mark = secrets.token_hex(4)
        step = {"run": {"command": f"echo {mark}", "container": {"image": "a"}}}
        status = await customer.upload([step] * EXPENSIVE_STEPS)
        met[f"expensive {status}"] += 1
        if status != 204:
            await asyncio.sleep(0.2)  # it ignores the time to retry


def _of_strangers(url: str, domain: Domain) -> list[bytes]:
    """Requests of all kinds, each signed with a new key. They are signed in advance, because signing costs CPU."""
    body = Upload(salt="00" * 32, definition="{}").model_dump_json().encode()
    definition_hash = hash_definition(bytes(32), b"{}")
    kinds = [("PUT", f"/v1/definitions/{definition_hash}", body), ("POST", "/v1/jobs/1/log?offset=0", b"x" * 10_000),
             ("GET", "/v1/jobs/1/log?offset=0&wait=20", b""), ("GET", "/v1/jobs/1/notices", b"")]  # fmt: skip
    made = []
    for method, path, content in itertools.islice(itertools.cycle(kinds), STRANGERS_PER_S * (ABUSED_S + 5)):
        headers = sign(Account.create(), domain, method, path, content, int(time.time()))
        lines = [f"{method} {path} HTTP/1.1", f"Host: {urlsplit(url).netloc}", f"Content-Length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        made.append("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
    return made


async def _strange(host: str, port: int, source: str, requests: Iterator[bytes], met: Counter[str]) -> None:
    """Send this sender's share of the strangers' requests at a steady rate, reconnecting when necessary."""
    started = time.monotonic()
    numbers = itertools.count()
    pause_s = STRANGE_CONNECTIONS / STRANGERS_PER_S
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(host, port, local_addr=(source, 0))
            while True:
                await asyncio.sleep(max(0.0, started + next(numbers) * pause_s - time.monotonic()))
                writer.write(next(requests))
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: ([0-9]+)", head)
                await reader.readexactly(int(length[1]) if length else 0)
                met[f"stranger {head[9:12].decode()}"] += 1
        met["stranger cut off"] += 1


# -- the measurement ---------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def abused(url: str, book: Path, key: Path) -> AsyncIterator[Callable[[], Awaitable[Counter[str]]]]:
    """Abuse the services for the duration of the context. Yields a function that ends it and returns what it met."""
    argv = [sys.executable, "-m", "tests.bench.services_abuse", "--abuse", url, str(book), str(key)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe)
    assert process.stdin is not None and process.stdout is not None
    output = process.stdout

    async def end() -> Counter[str]:
        assert process.stdin is not None
        process.stdin.close()
        return Counter(json.loads(await output.readline()))

    try:
        assert (await output.readline()).strip() == b"begun"
        yield end
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def measure(
    folder: Path, book: AddressBook, url: str, honest_key: Path, abuser_key: Path
) -> tuple[Honest, Honest, Counter[str]]:
    """Measure the honest customer's uploads alone and under abuse. Also returns what the abuse met."""
    file = book.save(folder / "book.json")
    async with client_at(HONEST) as client:
        party = Party(url, Domain(book.chain_id, book.meta_scheduler), Wallet.load(honest_key).account, client)
        alone = await upload_once_a_second(party, ALONE_S)
        async with abused(url, file, abuser_key) as end:
            under_abuse = await upload_once_a_second(party, ABUSED_S)
            met = await end()
    return alone, under_abuse, met


def main() -> int:
    if sys.argv[1:2] == ["--abuse"]:
        url, book, key = sys.argv[2:]
        asyncio.run(abuse(url, AddressBook.load(book), Path(key)))
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        anvil = Anvil(folder)
        anvil.start()
        try:
            grid = build(anvil, folder / "keys")
            for label in ("honest", "abuser"):
                asyncio.run(_fund(grid, label))
            keys = grid.keys / "honest-c", grid.keys / "abuser-c"
            with services_of(grid.book, folder) as url:
                alone, under_abuse, met = asyncio.run(measure(folder, grid.book, url, *keys))
        finally:
            anvil.stop()
    return report(alone, under_abuse, met)


async def _fund(grid: Grid, label: str) -> None:
    async with await Chain.connect(grid.book) as chain:
        await (await gather_people(grid, chain, label)).rest()


def report(alone: Honest, under_abuse: Honest, met: Counter[str]) -> int:
    """Print the table, what the abuse met, and the figures as JSON. Returns the exit status."""
    console = Console(stderr=True)
    table = Table("honest uploads", "p50 s", "p99 s", "longest s", "failed", title="The services under abuse")
    for name, found in (("alone", alone), ("under abuse", under_abuse)):
        figures = (found.percentile(0.5), found.percentile(0.99), max(found.seconds))
        table.add_row(f"{name}, {len(found.seconds)}", *(f"{figure:.2f}" for figure in figures), str(found.failed))
    console.print(table)
    console.print("The abuse met: " + ", ".join(f"{count} {name}" for name, count in sorted(met.items())))
    p99 = under_abuse.percentile(0.99)
    figures_by_name = {
        "honest_p99_s": round(p99, 3),
        "honest_failed": alone.failed + under_abuse.failed,
        "honest_alone_p99_s": round(alone.percentile(0.99), 3),
        "abused_to_alone_p50_ratio": round(under_abuse.percentile(0.5) / alone.percentile(0.5), 2),
    }
    print(json.dumps(figures_by_name))
    return 0 if p99 < MOST_P99_S and not figures_by_name["honest_failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
