"""Strangers keep the chain's node busy through the web app's relay, while another page reads the chain."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from deepgrid.chain.client import Chain
from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.values import coded_id
from tests.attacks.http_support import connect, many, person
from tests.chain.grid import Grid, gather_people, running_grid
from tests.gateway.relay_support import QUICK, Backend, running

CONNECTIONS, CALLS = 60, 100
BEFORE_THE_PAGE = 3000  # reads: far more than the batches in flight, far fewer than the flood
FAILURES, LIMIT = (3, -32000), -32005
JOBS = 10
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    async def fill() -> None:
        chain = await Chain.connect(found.book)
        people = await gather_people(found, chain, "relay")
        for _ in range(JOBS):
            await people.request()
        await people.rest()
        await chain.close()

    with running_grid(tmp_path_factory.mktemp("relay")) as found:
        asyncio.run(fill())
        yield found


@pytest.fixture
async def web(grid: Grid, tmp_path: Path) -> AsyncIterator[Backend]:
    async with running(grid.book, tmp_path) as backend:
        yield backend


def balances(web: Backend, count: int) -> list[tuple[str, list[Any]]]:
    """Return cheap reads that no page sent before."""
    people = [f"0x{random.getrandbits(150):040x}" for _ in range(count)]
    return [("eth_call", [web.call_of("balanceOf", one, contract="Credit"), "latest"]) for one in people]


def body_of(calls: list[tuple[str, list[Any]]]) -> bytes:
    return json.dumps([{"id": n, "method": name, "params": params} for n, (name, params) in enumerate(calls)]).encode()


async def answers(client: httpx.AsyncClient, web: Backend, calls: list[tuple[str, list[Any]]]) -> list[dict[str, Any]]:
    posted = await client.post(web.http.base_url.join("/rpc"), content=body_of(calls), headers=JSON)
    found: list[dict[str, Any]] = posted.json()
    return found


async def reads_before(page: httpx.AsyncClient, web: Backend, calls: list[tuple[str, list[Any]]]) -> int:
    """Return how many reads reach the node until the page has the answer to the first call."""
    before = web.app.relay.upstream.reads
    found = await answers(page, web, calls)
    assert "result" in found[0], found
    return web.app.relay.upstream.reads - before


@asynccontextmanager
async def flooded(
    web: Backend, clients: Iterable[httpx.AsyncClient], batches: int, last: list[tuple[str, list[Any]]]
) -> AsyncIterator[None]:
    """Request batches of reads as several clients in turn, and `last` after all others.

    The context begins when the first batches have reached the node.
    """
    before, flood = web.app.relay.upstream.reads, [balances(web, CALLS) for _ in range(batches)]
    pairs = zip(itertools.cycle(clients), [*flood, last], strict=False)
    sending = [asyncio.create_task(answers(client, web, calls)) for client, calls in pairs]
    try:
        async with asyncio.timeout(180):
            while web.app.relay.upstream.reads < before + 2 * CALLS:
                await asyncio.sleep(0.005)
        yield
    finally:
        for task in sending:
            task.cancel()
        await asyncio.gather(*sending, return_exceptions=True)


def at(web: Backend, address: str) -> httpx.AsyncClient:
    """Return a client whose connections come from this address, which this machine does not have."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=web.app, client=(address, 1)))


@pytest.mark.parametrize("asked", ["the newest block", "a read of its own", "a read that strangers asked last"])
@pytest.mark.attack(
    "12,000 reads of the chain at once from 60 connections of two addresses", attacker="a stranger with HTTP",
    gain="only the node's idle time",
    defence="source addresses take turns, even for a read that another one sent first; the queue of each is bounded; "
    "reads of the newest block do not wait",
)  # fmt: skip
async def test_a_flood_of_reads_delays_no_page(web: Backend, asked: str) -> None:
    shared = balances(web, 1)
    calls = {"the newest block": [("eth_blockNumber", [])], "a read of its own": balances(web, 1)}.get(asked, shared)
    async with (
        person("127.0.0.2") as one, person("127.0.0.4") as other, person("127.0.0.3") as page,
        flooded(web, (one, other), 2 * CONNECTIONS, shared),
    ):  # fmt: skip
        assert await reads_before(page, web, calls) < BEFORE_THE_PAGE


@pytest.mark.attack(
    "12,000 reads of the chain at once from 120 addresses of one IPv6 network", attacker="a stranger with HTTP",
    gain="one turn at the node", defence="all addresses of one /64, the least that a subscriber has, take turns as one",
)  # fmt: skip
async def test_the_addresses_of_one_network_take_turns_as_one(web: Backend) -> None:
    flood = [at(web, f"2001:db8:0:1::{number:x}") for number in range(2 * CONNECTIONS)]
    async with flooded(web, flood, len(flood), balances(web, 1)):
        assert await reads_before(at(web, "2001:db8:0:2::1"), web, balances(web, 1)) < BEFORE_THE_PAGE


@pytest.mark.attack(
    "calls without a gas limit that run to the node's own limit: `getMany` of one job 280 times",
    attacker="a stranger with HTTP", gain="20 million gas per call, which costs 40 reads of its rate",
    defence="the relay sets the gas of calls and estimates itself; the price of a call is its gas",
)  # fmt: skip
async def test_calls_get_little_gas(grid: Grid, tmp_path: Path) -> None:
    async with running(grid.book, tmp_path, replace(QUICK, answer_bytes=4 * 1024 * 1024)) as web:
        large = web.call_of("getMany", [coded_id(1)] * 280)
        for method in ("eth_call", "eth_estimateGas"):
            found = await web.rpc(method, large | {"gas": hex(10**9)}, "latest")
            assert found["error"]["code"] in FAILURES, method


async def test_pages_get_the_gas_that_they_need(web: Backend) -> None:
    """The largest reads of a page. One of them needs more gas than its length shows."""
    several = ("eth_call", [web.call_of("getMany", [coded_id(1)] * 100), "latest"])
    pending = ("eth_call", [web.call_of("pendingJobs", 1, 100), "latest"])
    found = await web.batch(several, pending)
    jobs = [interface("MetaScheduler").decode(name, bytes.fromhex(one["result"][2:]))[0]
            for name, one in zip(("getMany", "pendingJobs"), found, strict=True)]  # fmt: skip
    assert [len(one) for one in jobs] == [100, JOBS]


@pytest.mark.attack(
    "200 connections that promise 256 KiB each, and send nothing", attacker="a stranger with HTTP",
    gain="32 MiB of memory for 10 s", defence="promised bytes of bodies are bounded per address before they arrive",
)  # fmt: skip
async def test_promised_bodies_are_bounded_per_address(web: Backend) -> None:
    url = str(web.http.base_url)
    head = b"POST /rpc HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 262144\r\n\r\n"
    async with many(url, 200, head, ("127.0.0.2",)), person("127.0.0.3") as page:
        one = await connect(url, "127.0.0.2")
        await one.send(head.replace(b"Host: x\r\n", b"Host: x\r\nConnection: close\r\n"))
        assert (await one.rest()).startswith(b"HTTP/1.1 429 ")
        assert "result" in (await answers(page, web, balances(web, 1)))[0]
