"""The effect of each mode of the proxy on a real connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.chaos.proxy import HOST, Cut, Down, Hang, Pass, Proxy, Slow, http

LIMIT_S = 30.0


@pytest.fixture
async def echo() -> AsyncIterator[int]:
    """The port of an echo server."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(2**16):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, HOST)
    yield server.sockets[0].getsockname()[1]
    server.close()


@pytest.fixture
async def proxy(echo: int) -> AsyncIterator[Proxy]:
    proxy = Proxy(echo)
    proxy.start()
    yield proxy
    await asyncio.to_thread(proxy.close)


class Peer:
    """A client's connection through the proxy."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def receive(self, count: int) -> bytes:
        async with asyncio.timeout(LIMIT_S):
            return await self.reader.readexactly(count)

    async def rest(self) -> bytes:
        """Return the bytes received until the connection ends or breaks."""
        got = b""
        try:
            async with asyncio.timeout(LIMIT_S):
                while data := await self.reader.read(2**16):
                    got += data
        except ConnectionResetError:
            pass
        return got


async def connect(proxy: Proxy) -> Peer:
    return Peer(*await asyncio.open_connection(HOST, proxy.port))


async def test_bytes_pass_unchanged(proxy: Proxy) -> None:
    peer, data = await connect(proxy), bytes(range(256)) * 4096
    peer.send(data)
    peer.writer.write_eof()
    assert await peer.rest() == data


async def test_down_closes_open_connections_refuses_new_ones_and_keeps_its_port(proxy: Proxy, echo: int) -> None:
    peer = await connect(proxy)
    peer.send(b"one")
    assert await peer.receive(3) == b"one"
    proxy.set(Down())
    assert await peer.rest() == b""
    with pytest.raises(ConnectionRefusedError):
        await connect(proxy)
    with pytest.raises(OSError, match="in use"):
        await asyncio.start_server(lambda _r, _w: None, HOST, proxy.port)
    proxy.set(Pass())
    again = await connect(proxy)
    again.send(b"two")
    assert await again.receive(3) == b"two"


async def test_bytes_held_back_while_it_hangs_arrive_later(proxy: Proxy) -> None:
    old = await connect(proxy)
    proxy.set(Hang())
    new = await connect(proxy)
    for peer in (old, new):
        peer.send(b"late")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(reading := asyncio.ensure_future(old.receive(1))), 0.2)
    proxy.set(Pass())
    assert await reading == b"l"
    assert await old.receive(3) == b"ate"
    assert await new.receive(4) == b"late"


async def test_slow_delivers_every_byte_slowly(proxy: Proxy) -> None:
    peer, began = await connect(proxy), time.monotonic()
    proxy.set(Slow(delay_s=0.1, bytes_at_once=100, pause_s=0.01))
    peer.send(b"x" * 1000)
    assert await peer.receive(1000) == b"x" * 1000
    assert time.monotonic() - began >= 2 * (0.1 + 9 * 0.01)


@pytest.mark.parametrize("count", [0, 1, 700, 65537])
async def test_an_answer_is_cut_at_the_given_byte(proxy: Proxy, count: int) -> None:
    peer = await connect(proxy)
    peer.send(b"before")
    assert await peer.receive(6) == b"before"
    proxy.set(Cut(count))
    peer.send(b"y" * 100_000)
    assert await peer.rest() == b"y" * count
    assert proxy.cuts == 1


async def test_a_mode_with_an_answer_sends_it(proxy: Proxy) -> None:
    proxy.set(http("429 Too Many Requests", "slow down", "Retry-After: 1\r\n"))
    async with httpx.AsyncClient() as client:
        for _ in range(2):
            answer = await client.post(f"http://{HOST}:{proxy.port}/", content=b"z" * 100_000)
            assert (answer.status_code, answer.text, answer.headers["Retry-After"]) == (429, "slow down", "1")


def test_a_proxy_without_a_server_behind_it_breaks_connections() -> None:
    proxy = Proxy(1)
    proxy.start()

    async def ask() -> bytes:
        return await (await connect(proxy)).rest()

    try:
        assert asyncio.run(ask()) == b""
    finally:
        proxy.close()
