"""Strangers hold connections of the services: half-sent heads, endless headers and bodies, silence."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deepgrid.services.admission import Limits
from deepgrid.services.edge.proxy_file import EdgeLimits
from deepgrid.services.signing.request_signing import sign
from tests.attacks.http_support import HALF_HEAD, PATIENCE_S, WHOLE_HEAD, ask, connect, many, person
from tests.services.support import ACCOUNTS, DOMAIN, Grid, Start, a_job, starting

HASTE = EdgeLimits(connections=120, head_within_s=1, body_within_s=1, answer_within_s=1, keep_alive_s=2)
ENDED = b"HTTP/1.1 400 "
HONEST_WITHIN_S = 30.0  # on a busy machine; otherwise some milliseconds


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    async with starting(tmp_path) as start_one:
        yield start_one


async def honest(grid: Grid, source: str = "127.0.0.2") -> None:
    """Check that a client at another address is served quickly, with and without a signature."""
    started = time.monotonic()
    async with person(source) as client:
        answer = await client.get(f"{grid.url}/v1/health")
        assert answer.status_code == 200
        assert (await ask(client, grid, ACCOUNTS["customer"], "GET", "/v1/jobs/1/log")).status_code == 404
    assert time.monotonic() - started < HONEST_WITHIN_S


@pytest.mark.attack(
    "500 half-sent request heads from one address", attacker="a stranger with HTTP",
    gain="connections of the proxy for 10 s", defence="heads have a deadline, and the services do not notice",
)  # fmt: skip
async def test_half_sent_heads_stop_no_other_client(start: Start) -> None:
    grid = await start(edge=EdgeLimits(head_within_s=3))
    async with many(grid.url, 500, HALF_HEAD, ("127.0.6.6",)) as held:
        await honest(grid)
        await honest(grid, "127.0.6.6")  # not even another client at the attacker's address
        for raw in held:
            assert (await raw.rest())[:12] in (b"", b"HTTP/1.1 408")


@pytest.mark.attack(
    "connections from 60 addresses, more than the proxy takes", attacker="a stranger with HTTP",
    gain="connections until another client needs them", defence="the oldest idle connection is closed",
)  # fmt: skip
async def test_connections_of_many_addresses_make_room(start: Start) -> None:
    grid = await start(edge=HASTE)
    async with many(grid.url, 300, WHOLE_HEAD + b"\r\n", tuple(f"127.0.7.{n}" for n in range(1, 61))):
        await honest(grid)


@pytest.mark.attack(
    "a head sent byte by byte", attacker="a stranger with HTTP", gain="a connection for 10 s",
    defence="the deadline counts from the head's first byte, not from the last",
)  # fmt: skip
async def test_a_dripping_head_ends_at_its_deadline(start: Start) -> None:
    grid = await start(edge=HASTE)
    raw = await connect(grid.url)
    await raw.send(WHOLE_HEAD)
    started = time.monotonic()
    while await raw.send(b"a") and not raw.reader.at_eof():
        assert time.monotonic() - started < PATIENCE_S
        await asyncio.sleep(0.05)
    assert await raw.rest() == b""


@pytest.mark.attack(
    "a connection that sends nothing", attacker="a stranger with HTTP", gain="a connection for 10 s",
    defence="the deadline counts from the start of the connection",
)  # fmt: skip
async def test_silence_ends_at_its_deadline(start: Start) -> None:
    grid = await start(edge=HASTE)
    assert await (await connect(grid.url)).rest() == b""


@pytest.mark.attack(
    "150 idle connections that were served once", attacker="a stranger with HTTP", gain="60 s of a connection",
    defence="keep-alive has a timeout, and the oldest idle connection is closed",
)  # fmt: skip
async def test_idle_connections_make_room_and_end(start: Start) -> None:
    grid = await start(edge=HASTE)
    async with many(grid.url, 150, WHOLE_HEAD + b"\r\n", ("127.0.6.6", "127.0.6.7")) as held:
        await honest(grid)
        assert (await held[-1].rest()).startswith(b"HTTP/1.1 200")  # the connection ends although its client stays


@pytest.mark.parametrize(
    "piece",
    [
        pytest.param(b"X-Long: " + b"a" * 8000, id="one header"),
        pytest.param(b"X-Short: a\r\n" * 700, id="many headers"),
        pytest.param(b"a" * 8000, id="an endless name"),
    ],
)
@pytest.mark.attack(
    "headers without an end", attacker="a stranger with HTTP", gain="32 KiB of memory",
    defence="the size of a head is bounded",
)  # fmt: skip
async def test_endless_headers_are_cut_off(start: Start, piece: bytes) -> None:
    grid = await start(edge=EdgeLimits())  # with the real deadline, because the size must end it first
    raw = await connect(grid.url)
    await raw.send(WHOLE_HEAD)
    answer, sent = asyncio.create_task(raw.reader.read(len(ENDED))), 0
    while not answer.done() and await raw.send(piece):
        sent += len(piece)
        assert sent < 64 * 1024 * 1024
        await asyncio.sleep(0)
    assert await answer == ENDED
    raw.writer.transport.abort()
    await honest(grid)


@pytest.mark.attack(
    "a chunked body with endless trailers", attacker="a stranger with HTTP",
    gain="a connection of the proxy, which drops them", defence="the services get a request when it is complete",
)  # fmt: skip
async def test_endless_trailers_are_cut_off(start: Start) -> None:
    grid = await start(edge=EdgeLimits())
    raw = await connect(grid.url)
    await raw.send(b"POST /v1/jobs/1/log?offset=0 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n")
    sent = 0
    while sent < 16 * 1024 * 1024 and await raw.send(b"X-T: a\r\n" * 1000):
        sent += 8000
        await asyncio.sleep(0)
    assert grid.context.admission.running.all_held == 0
    await honest(grid)
    raw.writer.transport.abort()


@pytest.mark.attack(
    "a body that is announced and never sent", attacker="a stranger with HTTP",
    gain="a connection of the proxy for 10 s", defence="bodies have a deadline",
)  # fmt: skip
async def test_a_body_that_never_comes_has_a_deadline(start: Start) -> None:
    grid = await start(edge=HASTE)
    raw = await connect(grid.url)
    await raw.send(_signed_head(grid, b"Content-Length: 1000") + b"x")
    assert await raw.rest() == b""


@pytest.mark.attack(
    "a body that continues after its answer", attacker="a stranger with HTTP", gain="a connection for 10 s",
    defence="bytes after an answer have the deadline of a head",
)  # fmt: skip
async def test_a_body_that_continues_after_its_answer_is_cut_off(start: Start) -> None:
    grid = await start(edge=HASTE)
    raw = await connect(grid.url)
    await raw.send(WHOLE_HEAD + b"Content-Length: 1000000000\r\n\r\n")
    started = time.monotonic()
    while await raw.send(b"x") and not raw.reader.at_eof():
        assert time.monotonic() - started < PATIENCE_S
        await asyncio.sleep(0.05)


@pytest.mark.attack(
    "thousands of pipelined requests without reading an answer", attacker="a stranger with HTTP",
    gain="the rate of strangers", defence="the proxy hands on one request of a connection after the other",
)  # fmt: skip
async def test_pipelined_requests_have_the_rate_of_all_others(start: Start) -> None:
    grid = await start(edge=HASTE)
    raw = await connect(grid.url)
    await raw.send((WHOLE_HEAD + b"\r\n") * 1000)
    answers = await raw.rest()
    assert answers.count(b"HTTP/1.1 200") <= 2 * Limits().strangers_per_address.burst
    await honest(grid)


@pytest.mark.attack(
    "an upgrade to a websocket", attacker="a stranger with HTTP", gain="an answer",
    defence="the services support no websockets, and the deadlines stay in force",
)  # fmt: skip
async def test_websockets_are_refused(start: Start) -> None:
    grid = await start(edge=HASTE)
    raw = await connect(grid.url)
    upgrade = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    await raw.send(WHOLE_HEAD + upgrade + b"Sec-WebSocket-Version: 13\r\n\r\n")
    assert b"101 Switching" not in await raw.rest()


@pytest.mark.parametrize(
    "line",
    [
        b"CONNECT evil:443 HTTP/1.1", b"OPTIONS * HTTP/1.1", b"GET /v1/../../etc/passwd HTTP/1.1",
        b"GET //v1/health HTTP/1.1", b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1", b"GET /v1/jobs/1%2Flog/x HTTP/1.1",
        b"GET /v1/jobs/\xff/log HTTP/1.1",
        b"GET /v1/jobs/%00/notices HTTP/1.1", b"GET http://evil/v1/nothing HTTP/1.1", b"PRI * HTTP/2.0",
        b"GET /v1/jobs/1/notices/%0d%0aX-Injected:1 HTTP/1.1", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ],
)  # fmt: skip
@pytest.mark.attack(
    "odd paths, methods and protocols", attacker="a stranger with HTTP", gain="a refusal",
    defence="only the routes of docs/reference/protocol.md exist",
)  # fmt: skip
async def test_odd_request_lines_get_a_refusal(start: Start, line: bytes) -> None:
    grid = await start(edge=HASTE)
    raw = await connect(grid.url)
    await raw.send(line + b"\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = await raw.rest()
    assert not answer or answer[9:10] == b"4", answer
    assert b"root:" not in answer and b"\r\nx-injected" not in answer.lower()
    await honest(grid)


def _signed_head(grid: Grid, *further: bytes) -> bytes:
    """Return the head of a correctly signed log chunk. Its signature covers a body that is not sent yet."""
    path = "/v1/jobs/1/log?offset=0"
    signed = sign(ACCOUNTS["provider"], DOMAIN, "POST", path, b"x" * 1000, int(grid.clock()))
    lines = [f"{name}: {value}".encode() for name, value in signed.items()]
    return b"\r\n".join([f"POST {path} HTTP/1.1".encode(), b"Host: x", *lines, *further]) + b"\r\n\r\n"


@pytest.mark.attack(
    "the customer of a job follows its output more often than allowed", attacker="a customer",
    gain="waiting requests up to the limit, which share one reader of the database",
    defence="followers are limited per job and per address",
)  # fmt: skip
async def test_followers_of_a_job_are_bounded(start: Start) -> None:
    grid = await start(limits=Limits(followers_per_job=8))
    grid.chain.put(1, await grid.customer.upload(a_job()))
    async with person("127.0.6.6") as client:
        path = "/v1/jobs/1/log?offset=0&wait=3"
        asked = [ask(client, grid, ACCOUNTS["customer"], "GET", path) for _ in range(50)]
        statuses = [answer.status_code for answer in await asyncio.gather(*asked)]
    assert (statuses.count(200), statuses.count(429)) == (8, 42)
