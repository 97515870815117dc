"""Faults of the connection from the supervisor to its chain's node, and of the node's answers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from tests.chaos.fault import Fault
from tests.chaos.lagging import LaggingNode
from tests.chaos.proxy import Answer, Cut, Down, Hang, Mode, Pass, Slow, http
from tests.chaos.world import World

Choose = Callable[[random.Random], Mode]
BRIEF, SHORT, LONG = (1.0, 4.0), (2.0, 12.0), (33.0, 45.0)  # LONG exceeds the retries of one task


@asynccontextmanager
async def badly_connected(
    choose: Choose, seconds: tuple[float, float], times: int, world: World, rng: random.Random
) -> AsyncIterator[None]:
    """The supervisor's proxy to the node is in this mode for a while, once or several times."""
    yield
    try:
        for _ in range(times):
            await asyncio.sleep(rng.uniform(0, 3))
            await asyncio.to_thread(world.rpc.set, choose(rng))
            await asyncio.sleep(rng.uniform(*seconds))
            await asyncio.to_thread(world.rpc.set, Pass())
    finally:
        await asyncio.to_thread(world.rpc.set, Pass())


@asynccontextmanager
async def lagging(blocks: int, world: World, rng: random.Random) -> AsyncIterator[None]:
    """The supervisor's node lags some blocks behind. Transactions sent to it are still mined."""
    node = await asyncio.to_thread(LaggingNode, world.grid.anvil.rpc_url, blocks)
    try:
        await asyncio.to_thread(_lead, world, node.port)
        yield
        await asyncio.sleep(rng.uniform(5, 15))
    finally:
        await asyncio.to_thread(_lead, world, world.grid.ports.port("node-filter"))
        await asyncio.to_thread(node.close)


def _lead(world: World, port: int) -> None:
    """Point the supervisor's proxy to another node and close open connections."""
    world.rpc.target_port = port
    world.rpc.set(Down())
    world.rpc.set(Pass())


def always(mode: Mode) -> Choose:
    return lambda _rng: mode


def one_of(modes: Sequence[Mode]) -> Choose:
    return lambda rng: rng.choice(modes)


def ok(body: str) -> Answer:
    return http("200 OK", body)


REFUSALS = [
    http("429 Too Many Requests", "slow down", "Retry-After: 1\r\n"),
    ok('{"jsonrpc": "2.0", "id": null, "error": {"code": -32005, "message": "rate limit exceeded"}}'),
]
FAILURES = [
    http("500 Internal Server Error", "oops"),
    http("502 Bad Gateway", "<html>bad gateway</html>"),
    http("503 Service Unavailable"),
    ok('{"jsonrpc": "2.0", "id": null, "error": {"code": -32603, "message": "Internal error"}}'),
]
CLOSED = [http("401 Unauthorized"), http("403 Forbidden", "key expired"), http("404 Not Found")]
GARBAGE = [
    ok("<html>It works!</html>"),
    ok("\x00\x01\x02"),
    ok(""),
    ok("NaN"),
    http("302 Found", "", "Location: /login\r\n"),
]
SHAPES = [
    ok("[]"), ok("null"), ok("5"), ok('"0x1"'), ok("{}"), ok('{"jsonrpc": "2.0", "id": 1, "result": {}}'),
    ok('[{"jsonrpc": "2.0", "id": 1, "result": null}]'), ok('{"jsonrpc": "2.0", "id": null, "error": "no"}'),
    ok('[[1]]'), ok('{"jsonrpc": "2.0", "id": 1, "result": "0xnothing"}'),
]  # fmt: skip
HALVES = [
    ok('{"jsonrpc": "2.0", "id": 1, "result": {"number": "0x1'),
    Answer(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n{"jsonrpc": "2.0"'),
    Answer(b"HTTP/1.1 200 O"),
    Answer(b""),
]


def _cut(rng: random.Random) -> Mode:
    return Cut(rng.randint(1, 4000))


def _fault(name: str, choose: Choose, *, seconds: tuple[float, float] = SHORT, times: int = 1) -> Fault:
    return Fault(name, partial(badly_connected, choose, seconds, times))


FAULTS = [
    _fault("node down", always(Down()), seconds=BRIEF),
    _fault("node down for long", always(Down()), seconds=LONG),
    _fault("node down time and again", always(Down()), seconds=(0.2, 2.0), times=5),
    _fault("node hangs", always(Hang())),
    _fault("node hangs for long", always(Hang()), seconds=LONG),
    _fault("node is slow", always(Slow()), seconds=(5.0, 15.0)),
    _fault("node answers 429", one_of(REFUSALS), seconds=BRIEF),
    _fault("node fails", one_of(FAILURES)),
    _fault("node shows the door", one_of(CLOSED)),
    _fault("node answers garbage", one_of(GARBAGE), seconds=BRIEF),
    _fault("node answers JSON of another shape", one_of(SHAPES)),
    _fault("node answers half", one_of(HALVES)),
    _fault("connection to the node cut in answers", _cut, seconds=(0.5, 3.0), times=4),
    Fault("node is three blocks behind", partial(lagging, 3)),
    Fault("node is ten blocks behind", partial(lagging, 10)),
]
