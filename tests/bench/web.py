"""`./run bench web`: loads the relay with 1,000 open pages of one address. Each acts like a page of jobs: it reads the
head every 2 s, and its content in one batch at each new block. Four of five pages show the grid's market and a job, the
others each show the jobs of another customer. The chain makes a block every 2 s. The services run in one process, and
the pages in another. The share of a core counts the services' process. A request to the node is one HTTP exchange; its
calls are counted separately. Exit status 1: more than one core, more than 50 requests per second, or a p99 above 1 s.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop
from aiohttp import ClientSession, ClientTimeout, TCPConnector, web
from rich.console import Console
from rich.table import Table

from deepgrid.chain.book import AddressBook
from deepgrid.chain.node.contract import interface
from tests.chain.anvil import Anvil
from tests.chain.grid import build
from tests.cli.live import services_of

PAGES, SECONDS, WARM_S, HEAD_EVERY_S = 1000, 60.0, 6.0, 2.0
MOST_SHARE, MOST_NODE_RPS, MOST_P99_MS = 1.0, 50.0, 1000.0


@dataclass
class Found:
    """The results of the pages, and the requests that reached the node."""

    waits_s: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    exchanges: int = 0
    calls: int = 0
    measuring: bool = False

    def p(self, share: float) -> float:
        """Return a percentile of the waits, in ms."""
        return 1000 * sorted(self.waits_s)[min(len(self.waits_s) - 1, int(share * len(self.waits_s)))]


# -- the node, with a counter in front -------------------------------------------------------


class Counter:
    """Forwards requests to the node, and counts them."""

    def __init__(self, node: str, found: Found) -> None:
        self._node, self._found = node, found
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        if self._found.measuring:
            self._found.exchanges += 1
            self._found.calls += body.count(b'"method"')
        async with self._http.post(self._node, data=body, headers={"Content-Type": "application/json"}) as answer:
            return web.Response(body=await answer.read(), content_type="application/json")

    async def __aenter__(self) -> Counter:
        self._http = ClientSession(trust_env=False)
        app = web.Application(client_max_size=2**24)
        app.router.add_post("/", self.answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()
        await self._runner.cleanup()


# -- the pages -------------------------------------------------------------------------------


class Page:
    """One open page."""

    def __init__(self, number: int, book: AddressBook, http: ClientSession, url: str, found: Found) -> None:
        self._http, self._url, self._found = http, f"{url}/rpc", found
        shared = number % 5 != 0
        who = f"0x{1 if shared else number:040x}"
        contracts = {
            "MetaScheduler": book.meta_scheduler, "Credit": book.credit, "ProviderManager": book.provider_manager,
        }  # fmt: skip

        def call(contract: str, name: str, *arguments: object) -> dict[str, str]:
            return {"to": contracts[contract], "data": interface(contract).encode(name, *arguments)}

        self._calls = [
            call("MetaScheduler", "jobIdCounter"),
            call("MetaScheduler", "minimumAmount"),
            call("Credit", "totalSupply"),
            call("Credit", "balanceOf", who),
            call("Credit", "allowance", who, contracts["MetaScheduler"]),
        ]
        self._id = 0
        self._block = ""
        self._offset_s = HEAD_EVERY_S * number / PAGES

    async def live(self, until: float) -> None:
        await asyncio.sleep(self._offset_s)
        while (started := time.monotonic()) < until:
            head = await self._ask([("eth_blockNumber", [])])
            if head and head[0] != self._block:
                self._block = head[0]
                await self._ask([("eth_call", [call, self._block]) for call in self._calls])
            await asyncio.sleep(max(0.0, started + HEAD_EVERY_S - time.monotonic()))

    async def _ask(self, calls: list[tuple[str, list[object]]]) -> list[str] | None:
        body = [
            {"jsonrpc": "2.0", "id": self._id + n, "method": name, "params": p} for n, (name, p) in enumerate(calls)
        ]
        self._id += len(calls)
        started = time.monotonic()
        try:
            async with self._http.post(self._url, json=body) as answer:
                text = await answer.read()
                if answer.status != 200:
                    raise ValueError(f"status {answer.status}")
            results = [one["result"] for one in json.loads(text)]
        except (OSError, ValueError, KeyError, TimeoutError) as fault:
            self._found.faults.append(f"{type(fault).__name__}: {fault}")
            return None
        if self._found.measuring:
            self._found.waits_s.append(time.monotonic() - started)
        return results


async def open_pages(book: AddressBook, url: str, found: Found, pid: int, seconds: float) -> float:
    """Open all pages, and return the share of a core that the services used."""
    # As many connections as browsers would keep.
    http = ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=20), trust_env=False)
    async with http:
        until = time.monotonic() + HEAD_EVERY_S + WARM_S + seconds
        pages = [asyncio.create_task(Page(n, book, http, url, found).live(until)) for n in range(PAGES)]
        await asyncio.sleep(HEAD_EVERY_S + WARM_S)
        used, started, found.measuring = cpu_seconds(pid), time.monotonic(), True
        await asyncio.sleep(max(0.0, until - time.monotonic()))
        share = (cpu_seconds(pid) - used) / (time.monotonic() - started)
        found.measuring = False
        await asyncio.gather(*pages)
    return share


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and its living children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# -- the measurement -------------------------------------------------------------------------


async def measure(book: AddressBook, folder: Path, seconds: float) -> tuple[Found, float]:
    found = Found()
    async with Counter(book.rpc_url, found) as counter:
        of_services = book.model_copy(update={"rpc_url": counter.url})
        starting = services_of(of_services, folder)
        url = await asyncio.to_thread(starting.__enter__)
        try:
            pid = process_at(url)
            return found, await open_pages(book, url, found, pid, seconds)
        finally:
            await asyncio.to_thread(starting.__exit__, None, None, None)


def process_at(url: str) -> int:
    """Return the process that listens at this address."""
    port = url.rpartition(":")[2]
    listed = subprocess.run(["ss", "-Hltnp", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"pid=(\d+)", listed)
    assert found, "the services do not listen"
    return int(found[1])


@contextmanager
def chain(folder: Path) -> Iterator[AddressBook]:
    """Yield a grid on a node that makes a block every 2 s."""
    anvil = Anvil(folder)
    anvil.start()
    try:
        grid = build(anvil, folder / "keys")
        anvil.call("evm_setAutomine", False)
        anvil.call("evm_setIntervalMining", 2)
        yield grid.book
    finally:
        anvil.stop()


def report(found: Found, share: float, seconds: float) -> int:
    """Print the table, and the figures as JSON. Returns the exit status."""
    node_rps, p99 = found.exchanges / seconds, found.p(0.99)
    table = Table("figure", "found", "limit", title=f"{PAGES:,} open pages of one address, {seconds:.0f} s")
    rows = (
        ("answers per second", f"{len(found.waits_s) / seconds:,.0f}", ""),
        ("share of a core", f"{share:.2f}", f"{MOST_SHARE:.2f}"),
        ("requests to the node per second", f"{node_rps:.1f}", f"{MOST_NODE_RPS:.0f}"),
        ("calls in them per second", f"{found.calls / seconds:,.0f}", ""),
        ("answer, median", f"{found.p(0.5):.0f} ms", ""),
        ("answer, p99", f"{p99:.0f} ms", f"{MOST_P99_MS:.0f} ms"),
        ("failed requests", f"{len(found.faults)}", "0"),
    )
    for row in rows:
        table.add_row(*row)
    console = Console(stderr=True, width=100)
    console.print(table)
    for fault in found.faults[:3]:
        console.print(fault, markup=False)
    figures = {"bench": "web", "cpu_share": round(share, 2), "node_rps": round(node_rps, 1), "p99_ms": round(p99)}
    print(json.dumps(figures))
    return 0 if share < MOST_SHARE and node_rps < MOST_NODE_RPS and p99 < MOST_P99_MS and not found.faults else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with chain(folder) as book:
            found, share = uvloop.run(measure(book, folder, seconds))
    return report(found, share, seconds)


if __name__ == "__main__":
    sys.exit(main())
