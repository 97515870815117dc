"""Malformed and hostile calls of the log service get a clear status, leave no traceback, and hold nothing."""

from __future__ import annotations

import asyncio
import base64
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from grpc import aio

from deepgrid.compat.compat_context import CompatLimits, CompatSettings
from deepgrid.lifecycle.states import JobStatus
from deepgrid.services.admission import Limits, Rate
from deepgrid.services.edge.proxy_file import EdgeLimits
from tests.appending import push_log
from tests.compat.logger_support import (
    PATH,
    TRANSPORTS,
    TYPES,
    WITHIN_S,
    Ended,
    end_of,
    frame,
    messages_of,
    read_request,
    stream,
)
from tests.services.support import Grid, Start, waits
from tests.waiting import until

NAME = "0" * 64
WEB = TRANSPORTS[1:]
FREE = Rate(10_000, 10_000)
OPEN = Limits(strangers_per_address=FREE, lookups=FREE, lookups_per_address=FREE)


@pytest.fixture
async def served(start: Start, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Grid]:
    grid = await start(grpc_port=0, limits=OPEN)
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    yield grid
    assert grid.compat.admission.running.all_held == 0
    assert grid.compat.admission.followers_by_job.all_held == 0
    assert grid.context.admission.followers_by_job.all_held == 0
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_signatures_of_any_length_are_refused(served: Grid, transport: str) -> None:
    made = random.Random(1)
    for length in (*range(0, 201, 1 if transport == "grpc" else 13), 64, 65, 66):
        request = read_request(signature=made.randbytes(length))
        code, sentence = await end_of(served, transport, request.SerializeToString())
        assert (code, bool(sentence)) == (16, True), length
    for signature in (bytes(65), b"\xff" * 65, bytes(64) + b"\x1b", b"\xff" * 64 + b"\x1c"):
        assert (await end_of(served, transport, read_request(signature=signature).SerializeToString()))[0] == 16


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_malformed_requests_are_refused(served: Grid, transport: str) -> None:
    whole = read_request().SerializeToString()
    for cut in range(1, len(whole), 7):
        assert (await end_of(served, transport, whole[:cut]))[0] in (3, 16)
    made = random.Random(2)
    for _ in range(20):
        assert (await end_of(served, transport, made.randbytes(made.randrange(1, 300))))[0] in (3, 16)
    assert (await end_of(served, transport, b"\x0a\x01\xff"))[0] == 3, "text that is not UTF-8"
    for field, value in (("address", ""), ("address", "x" * 4000), ("log_name", "y" * 4000), ("timestamp", 2**64 - 1)):
        request = read_request()
        setattr(request, field, value)
        assert (await end_of(served, transport, request.SerializeToString()))[0] == 16
    code, _ = await end_of(served, transport, bytes(9000))
    assert code in (3, 8), "larger than a request may be"


@pytest.mark.parametrize("transport", WEB)
async def test_wrong_frames_are_refused(served: Grid, transport: str) -> None:
    good = frame(read_request().SerializeToString())
    bodies = [good[:cut] for cut in range(0, len(good), 11)]
    bodies += [good + b"x", good + good, b"\0\xff\xff\xff\xff" + good[5:], b"\x80" + good[1:], b"\x01" + good[1:]]
    for body in bodies:
        coded = base64.b64encode(body) if transport == "web-text" else body
        assert await web_end(served, transport, coded) in (3, 12)
    if transport == "web-text":
        for coded in (b"*" * 40, base64.b64encode(good)[:-1], b"=" * 8, "\u00e9".encode()):
            assert await web_end(served, transport, coded) == 3


async def test_wrong_types_and_headers_are_refused(served: Grid) -> None:
    body = frame(read_request().SerializeToString())
    async with httpx.AsyncClient() as client:
        for kind in ("application/json", "application/grpc", "", "text/plain; charset=x"):
            answer = await client.post(served.url + PATH + "Read", content=body, headers={"content-type": kind})
            assert answer.status_code == 415
            assert "application/grpc-web+proto" in answer.json()["error"]
        assert (await client.get(served.url + PATH + "Read")).status_code == 405
    for timeout in ("x", "1", "S", "-1S", "1.5S", "9" * 400 + "m"):
        assert await web_end(served, "web", body, {"grpc-timeout": timeout}) == 3


async def test_a_huge_body_is_not_read(served: Grid) -> None:
    sent = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 1
            yield bytes(1024 * 1024)

    async with httpx.AsyncClient(timeout=WITHIN_S) as client:
        try:
            answer = await client.post(
                served.url + PATH + "Read", content=body(), headers={"content-type": TYPES["web"]}
            )
            assert answer.status_code == 413
        except httpx.TransportError:
            pass  # the service hung up
    assert sent < 50
    assert (await end_of(served, "grpc", bytes(100 * 1024 * 1024)))[0] == 8


async def test_calls_without_a_request_end(start: Start) -> None:
    grid = await start(grpc_port=0, compat=CompatSettings(limits=CompatLimits(request_within_s=0.3)))
    async with aio.insecure_channel(str(grid.grpc)) as channel:
        silent = channel.stream_stream(PATH + "Read")(timeout=WITHIN_S)
        assert (await silent.code()).name == "DEADLINE_EXCEEDED"
        empty = channel.stream_stream(PATH + "Read")(timeout=WITHIN_S)
        await empty.done_writing()
        assert (await empty.code()).name in ("INVALID_ARGUMENT", "DEADLINE_EXCEEDED")
    await until(lambda: nothing_runs(grid))


async def test_a_reader_that_takes_nothing_is_cut_off(start: Start) -> None:
    compat = CompatSettings(limits=CompatLimits(answer_within_s=0.5))
    grid = await start(edge=EdgeLimits(answer_within_s=1), compat=compat)
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    size = 0
    for _ in range(12):
        size = await push_log(grid.provider, 1, size, (b"y" * 999 + b"\n") * 1000)
    request = read_request().SerializeToString()
    async with aio.insecure_channel(str(grid.grpc)) as channel:
        call = channel.unary_stream(PATH + "Read")(request, timeout=WITHIN_S)
        await call.read()
        async with slow_web(grid, request):
            await until(lambda: nobody_waits(grid))
        call.cancel()
    await until(lambda: nothing_runs(grid))


async def test_streams_and_strangers_are_bounded(start: Start) -> None:
    grid = await start(grpc_port=0, limits=Limits(followers_per_job=1, strangers_per_address=Rate(0.01, 12)))
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    await push_log(grid.provider, 1, 0, b"x\n")
    first = stream(grid, "grpc", read_request().SerializeToString())
    await anext(first)
    for transport in TRANSPORTS:
        code, sentence = await end_of(grid, transport, read_request().SerializeToString())
        assert (code, "too many" in sentence) == (8, True)
    await first.aclose()
    codes = [(await end_of(grid, "grpc", b"\xff"))[0] for _ in range(9)]
    assert codes[0] == 3
    assert codes[-1] == 8, "the address is refused from now on"
    assert (await end_of(grid, "web", b"\xff"))[0] == -429


async def test_a_stream_has_a_longest_time(start: Start) -> None:
    grid = await start(grpc_port=0, compat=CompatSettings(limits=CompatLimits(stream_s=0.2)))
    grid.chain.put(1, NAME, JobStatus.RUNNING)
    for transport in TRANSPORTS:
        code, sentence = await end_of(grid, transport, read_request().SerializeToString())
        assert (code, "open it again" in sentence) == (14, True)


@asynccontextmanager
async def slow_web(grid: Grid, request: bytes) -> AsyncIterator[None]:
    """Send requests over gRPC-web, and read no answer."""
    host, _, port = grid.url.removeprefix("http://").partition(":")
    _, writer = await asyncio.open_connection(host, int(port), limit=1024)
    body = frame(request)
    head = f"POST {PATH}Read HTTP/1.1\r\nHost: x\r\nContent-Type: {TYPES['web']}\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    try:
        yield
    finally:
        writer.close()


async def web_end(grid: Grid, transport: str, body: bytes, headers: dict[str, str] | None = None) -> int:
    """Return the status of a call with this body."""
    sent = {"content-type": TYPES[transport], **(headers or {})}
    async with (
        httpx.AsyncClient() as client,
        client.stream("POST", grid.url + PATH + "Read", content=body, headers=sent) as answer,
    ):
        assert answer.status_code == 200
        with pytest.raises(Ended) as ended:
            assert [message async for message in messages_of(answer, text=transport == "web-text")] == []
        assert ended.value.sentence
        return ended.value.code


async def nobody_waits(grid: Grid) -> bool:
    return not await waits(grid, 1)


async def nothing_runs(grid: Grid) -> bool:
    return grid.compat.admission.running.all_held == 0
