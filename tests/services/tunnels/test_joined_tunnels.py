"""Tunnels of one supervisor at real services: all in one WebSocket, or each in its own with an earlier release."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from deepgrid.errors import ServiceError
from deepgrid.services.admission.limits import Pace
from deepgrid.services.client.tunnels_client import TunnelsClient
from deepgrid.services.tunnels import switchboard
from deepgrid.services.tunnels.tunnel_frames import FIRST_WINDOW
from deepgrid.services.tunnels.tunnel_socket import TunnelSocket
from tests.services.conftest import start  # noqa: F401 - a fixture
from tests.services.support import Start
from tests.services.tunnels.tunnels_support import PROVIDER, Tunnels, open_tunnels, pass_both_ways
from tests.waiting import until


@pytest.fixture
async def tunnels(start: Start) -> AsyncIterator[Tunnels]:  # noqa: F811
    async with open_tunnels(start) as found:
        yield found


async def test_all_tunnels_of_a_supervisor_share_one_websocket(tunnels: Tunnels) -> None:
    pairs = [await tunnels.opened() for _ in range(4)]
    assert tunnels.supervisor._shared is not None
    assert tunnels.supervisor._shared.tunnels == 4
    for number, (near, far) in enumerate(pairs):
        await pass_both_ways(near, far, b"tunnel %d" % number)
    await pairs[0][0].close()
    assert await pairs[0][1].receive() == b""
    await pairs[1][1].close()
    assert await pairs[1][0].receive() == b""
    await pass_both_ways(*pairs[2])
    await until(lambda: tunnels.grid.context.switchboard.open_tunnels == 2)


async def test_the_websocket_ends_with_its_last_tunnel_and_another_one_opens(tunnels: Tunnels) -> None:
    near, _ = await tunnels.opened()
    first = tunnels.supervisor._shared
    assert first is not None
    await near.close()
    await first.over
    await until(lambda: not tunnels.grid.context.switchboard.open_tunnels)
    await pass_both_ways(*(await tunnels.opened()))
    assert tunnels.supervisor._shared is not first


async def test_a_tunnel_that_joins_as_the_last_one_leaves_is_served(tunnels: Tunnels) -> None:
    _, last = await tunnels.opened()
    near, token = await tunnels.invited()
    await last.close()
    await pass_both_ways(near, await tunnels.supervisor.join_with_others(PROVIDER, token))


async def test_an_unexpected_error_ends_only_its_tunnel(
    tunnels: Tunnels, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pair = await tunnels.opened()
    near, far = await tunnels.opened()

    async def fail(_: Pace, amount: int) -> None:
        if amount == len(b"bad luck"):
            raise ArithmeticError

    monkeypatch.setattr(Pace, "wait", fail)
    await far.send(b"bad luck")
    assert await far.receive() == b""
    assert await near.receive() == b""
    await pass_both_ways(*pair)
    assert "a tunnel failed: unexpected error (ArithmeticError)" in caplog.messages


async def test_much_passes_both_ways(tunnels: Tunnels) -> None:
    """Bursts fill the largest messages of the WebSocket."""
    pairs = [await tunnels.opened() for _ in range(4)]
    size, count = 16 * 1024, 4 * FIRST_WINDOW // (16 * 1024)

    async def carry(one: TunnelSocket, other: TunnelSocket) -> None:
        sending = asyncio.create_task(_flood(one, size))
        for _ in range(count):
            assert await other.receive() == bytes(size)
        sending.cancel()

    await asyncio.gather(*(carry(*pair) for pair in pairs), *(carry(far, near) for near, far in pairs))


async def _flood(socket: TunnelSocket, size: int) -> None:
    while True:
        await socket.send(bytes(size))


async def test_a_supervisor_joins_services_of_the_previous_release(
    tunnels: Tunnels, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They know one tunnel per WebSocket. The handshake tells, so nothing is lost."""
    monkeypatch.setattr(switchboard, "SUBPROTOCOL", "another")
    pairs = [await tunnels.opened() for _ in range(2)]
    assert tunnels.supervisor._shared is None
    for pair in pairs:
        await pass_both_ways(*pair)


async def test_a_supervisor_of_the_previous_release_joins(tunnels: Tunnels) -> None:
    near, token = await tunnels.invited()
    await pass_both_ways(near, await tunnels.supervisor.join(PROVIDER, token))


async def test_a_token_that_is_invented_or_used_joins_nothing(tunnels: Tunnels) -> None:
    pair = await tunnels.opened()
    for token in ("0" * 64, "", "x" * 1000, tunnels.tokens[0]):
        with pytest.raises(ServiceError):
            await tunnels.supervisor.join_with_others(PROVIDER, token)
    await pass_both_ways(*pair)


async def test_a_customer_has_no_shared_websocket(tunnels: Tunnels, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its side is one tunnel, even if it offers the subprotocol."""
    monkeypatch.setattr(TunnelsClient, "join", TunnelsClient.join_with_others)
    near, token = await tunnels.invited()
    assert tunnels.customers[0]._shared is None
    monkeypatch.undo()
    await pass_both_ways(near, await tunnels.supervisor.join_with_others(PROVIDER, token))
