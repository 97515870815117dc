"""Many tunnels in one WebSocket: they join by tokens, wait for themselves only, and end together with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from deepgrid.services.tunnels.frame_connection import MOST_AT_ONCE
from deepgrid.services.tunnels.multiplexer import FIRST, MESSAGE_COST, MOST_REFUSED, Multiplexer, Part
from deepgrid.services.tunnels.secure_channel import MAX_MESSAGE
from deepgrid.services.tunnels.tunnel_frames import FIRST_WINDOW
from deepgrid.services.tunnels.tunnel_socket import TunnelSocket
from tests.waiting import until

WITHIN_S = 10.0


@dataclass
class Wire:
    """One direction of a WebSocket."""

    messages: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    passed: list[bytes] = field(default_factory=list)


class Side:
    """One end of a WebSocket in memory."""

    def __init__(self, out: Wire, back: Wire) -> None:
        self._out, self._back = out, back

    async def send(self, data: bytes) -> None:
        self._out.passed.append(data)
        await self._out.messages.put(data)

    async def receive(self) -> bytes:
        return await self._back.messages.get()

    async def close(self) -> None:
        await self._out.messages.put(b"")
        await self._back.messages.put(b"")


@dataclass
class Pair:
    """The supervisor's multiplexer and the one of the services, which knows some tokens."""

    supervisor: Multiplexer
    services: Multiplexer
    wire: Wire
    joined: dict[str, TunnelSocket]
    raw: Side


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    there, back, joined = Wire(), Wire(), dict[str, TunnelSocket]()

    def admit(token: str, tunnel: TunnelSocket) -> bool:
        if not token.startswith("good"):
            return False
        joined[token] = tunnel
        return True

    raw = Side(there, back)
    services = Multiplexer(Side(back, there), admit)
    supervisor = Multiplexer(raw)
    async with asyncio.timeout(WITHIN_S):
        yield Pair(supervisor, services, there, joined, raw)
        await supervisor.close()
        await services.close()


async def _joined(pair: Pair, token: str) -> tuple[TunnelSocket, TunnelSocket]:
    tunnel = await pair.supervisor.join(token)
    assert tunnel is not None
    return tunnel, pair.joined[token]


async def test_messages_of_many_tunnels_go_together(pair: Pair) -> None:
    """The first goes at once. What follows within a moment is one message of the WebSocket."""
    tunnels: list[tuple[TunnelSocket, TunnelSocket]] = [(pair.supervisor.first, pair.services.first)]
    tunnels += [await _joined(pair, f"good {number}") for number in range(99)]
    pair.wire.passed.clear()
    for number, (near, _) in enumerate(tunnels):
        await near.send(b"%d" % number)
    assert [await far.receive() for _, far in tunnels] == [b"%d" % number for number in range(100)]
    assert len(pair.wire.passed) <= 3
    await asyncio.gather(*(far.send(b"back") for _, far in tunnels))
    assert [await near.receive() for near, _ in tunnels] == [b"back"] * 100


async def test_large_messages_are_cut_and_joined_again(pair: Pair) -> None:
    sent = bytes(range(256)) * (MAX_MESSAGE // 256)
    for _ in range(5):
        await pair.supervisor.first.send(sent)
    assert [await pair.services.first.receive() for _ in range(5)] == [sent] * 5
    assert max(map(len, pair.wire.passed)) <= MOST_AT_ONCE


async def test_a_tunnel_that_is_not_read_holds_up_no_other_one(pair: Pair) -> None:
    """It keeps one window at the side that does not read, and then its sender waits."""
    near, far = await _joined(pair, "good")
    size, passed = 1000, 0

    async def flood() -> None:
        nonlocal passed
        while True:
            await near.send(bytes(size))
            passed += size

    flooding = asyncio.create_task(flood())
    await until(lambda: passed // size == FIRST_WINDOW // (size + MESSAGE_COST))
    await pair.supervisor.first.send(b"the other one")
    assert await pair.services.first.receive() == b"the other one"
    assert passed <= FIRST_WINDOW
    for _ in range(4 * FIRST_WINDOW // size):
        assert await far.receive() == bytes(size)
    flooding.cancel()


async def test_a_token_that_is_not_known_joins_nothing_and_ends_nothing(pair: Pair) -> None:
    assert await pair.supervisor.join("invented") is None
    near, far = await _joined(pair, "good")
    await near.send(b"a")
    assert await far.receive() == b"a"


async def test_a_join_that_is_not_answered_ends_in_time() -> None:
    """What its token started meanwhile ends, too."""
    there, back = Wire(), Wire()
    hasty = Multiplexer(Side(there, back), join_within_s=0.01)
    assert await hasty.join("good") is None
    assert hasty.tunnels == 1
    await until(lambda: bytes([Part.LEAVE, 0, 0, 0, FIRST + 1]) in b"".join(there.passed))
    await hasty.close()


async def test_a_tunnel_that_ends_delivers_what_it_was_sent(pair: Pair) -> None:
    near, far = await _joined(pair, "good")
    await near.send(b"the last words")
    await near.close()
    assert [await far.receive(), await far.receive()] == [b"the last words", b""]
    with pytest.raises(ConnectionError):
        await far.send(b"too late")
    with pytest.raises(ConnectionError):
        await near.send(b"too late")
    await pair.services.first.send(b"the first one stays")
    assert await pair.supervisor.first.receive() == b"the first one stays"


@pytest.mark.parametrize("side", ["supervisor", "services"])
async def test_it_ends_with_its_last_tunnel(pair: Pair, side: str) -> None:
    await getattr(pair, side).first.close()
    async with asyncio.timeout(WITHIN_S):
        await asyncio.gather(pair.supervisor.over, pair.services.over)
    assert await pair.supervisor.join("good") is None


async def test_a_key_overtakes_what_other_tunnels_send_in_bulk() -> None:
    """Each tunnel sends one message in turn. In one queue, the key would wait for all that came before it."""
    out, bulk = Wire(), 8
    gate = asyncio.Event()

    class Slow(Side):
        async def send(self, data: bytes) -> None:
            await gate.wait()
            await super().send(data)

    services = Multiplexer(Slow(out, Wire()), lambda *_: True)
    for number in range(2, bulk + 2):
        services._received(Part.JOIN, number, b"good")
    tunnels = [services._tunnels[number] for number in range(2, bulk + 2)]
    messages = FIRST_WINDOW // (MAX_MESSAGE + MESSAGE_COST)
    async with asyncio.timeout(WITHIN_S):
        for tunnel in tunnels:
            for _ in range(messages):
                await tunnel.send(bytes(MAX_MESSAGE))
        await services.first.send(b"a key")
        gate.set()
        await until(lambda: any(b"a key" in data for data in out.passed))
        before = b"".join(out.passed).index(b"a key")
        assert before <= 2 * MOST_AT_ONCE + bulk * (MAX_MESSAGE + MESSAGE_COST) < bulk * messages * MAX_MESSAGE
        await until(lambda: sum(map(len, out.passed)) >= bulk * messages * MAX_MESSAGE)
    await services.close()


async def test_a_join_behind_the_last_leave_uses_no_token(pair: Pair) -> None:
    """Both arrive in one message. The first ends the connection, so the token must stay good for another one."""
    pair.supervisor._put(Part.LEAVE, FIRST)
    pair.supervisor._put(Part.JOIN, FIRST + 1, b"good")
    assert await pair.services.over == "no tunnel is left"
    assert not pair.joined


async def test_all_tunnels_end_with_the_connection(pair: Pair) -> None:
    near, far = await _joined(pair, "good")
    await pair.raw.close()
    assert [await near.receive(), await far.receive(), await pair.services.first.receive()] == [b""] * 3
    with pytest.raises(ConnectionError):
        await near.send(b"too late")


async def test_a_write_that_fails_in_an_unknown_way_ends_the_connection() -> None:
    """Otherwise its senders hang."""

    class Broken(Side):
        async def send(self, data: bytes) -> None:
            raise ArithmeticError

    broken = Multiplexer(Broken(Wire(), Wire()))
    with pytest.raises(ConnectionError):
        async with asyncio.timeout(WITHIN_S):
            while True:
                await broken.first.send(bytes(1000))
    assert broken.over.result() == "it was cut off"
    with pytest.raises(ArithmeticError):
        await broken._tasks[1]


async def test_tiny_messages_take_little_memory(pair: Pair) -> None:
    """Each one counts more than its content. Else 130,000 of them would wait in one window."""
    near, _ = await _joined(pair, "good")
    sent = 0
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            while True:
                await near.send(b"x")
                sent += 1
    assert sent == FIRST_WINDOW // (1 + MESSAGE_COST)


@pytest.mark.parametrize(
    ("frames", "says"),
    [
        ([(Part.MESSAGE, FIRST, bytes(MAX_MESSAGE))] * (FIRST_WINDOW // MAX_MESSAGE + 1), "more than the window"),
        ([(Part.MESSAGE, FIRST, b"")], "an empty message"),
        ([(Part.MESSAGE, FIRST, bytes(MAX_MESSAGE + 1))], "bytes"),
        ([(Part.WINDOW, FIRST, b"\0\0\0\1")], "the window is too large"),
        ([(Part.WINDOW, FIRST, b"x")], "no size"),
        ([(Part.JOIN, FIRST, b"good")], "used twice"),
        ([(Part.JOIN, number, b"invented") for number in range(2, 2 * MOST_REFUSED)], "an unknown token"),
        ([(99, FIRST, b"")], "the kind 99"),
    ],
    ids=["window", "empty", "long", "credit", "short", "twice", "tokens", "kind"],
)
async def test_a_broken_protocol_ends_the_connection(
    pair: Pair, frames: list[tuple[int, int, bytes]], says: str
) -> None:
    for frame in frames:
        pair.supervisor._put(*frame)
    assert says in await pair.services.over
    assert await pair.services.first.receive() in (b"", bytes(MAX_MESSAGE))
