"""Attacks on the WebSocket that all tunnels of a supervisor share, at real services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from deepgrid.services.client.tunnels_client import TunnelsClient
from deepgrid.services.tunnels.multiplexer import FIRST, MESSAGE_COST, MOST_REFUSED, Part
from deepgrid.services.tunnels.tunnel_frames import FIRST_WINDOW
from deepgrid.services.tunnels.tunnel_socket import TunnelSocket
from tests.services.conftest import start  # noqa: F401 - a fixture
from tests.services.support import Start
from tests.services.tunnels.tunnels_support import Tunnels, open_tunnels, pass_both_ways
from tests.waiting import until

JUNK: dict[str, list[tuple[int, int, bytes]]] = {
    "an unknown kind": [(99, FIRST, b"")],
    "more than a window": [(Part.MESSAGE, FIRST, b"x")] * (FIRST_WINDOW // MESSAGE_COST),
    "invented tokens": [(Part.JOIN, number, b"0" * 64) for number in range(2, 2 * MOST_REFUSED)],
}


@pytest.fixture
async def tunnels(start: Start) -> AsyncIterator[Tunnels]:  # noqa: F811
    async with open_tunnels(start) as found:
        yield found


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.attack(
    "breaks the protocol of its WebSocket, fills it with tiny messages, or joins with invented tokens",
    attacker="a provider", gain="the end of all its own sessions, and one window of memory for each until then",
    defence="each tunnel has a window, in which a tiny message counts more than it has; tokens are good once",
)  # fmt: skip
async def test_junk_in_the_websocket_ends_the_tunnels_of_its_supervisor(tunnels: Tunnels, junk: str) -> None:
    near, far = await tunnels.opened()
    hostile = Tunnels(tunnels.grid, TunnelsClient(tunnels.grid.provider))
    theirs, _ = await hostile.opened()
    assert hostile.supervisor._shared is not None
    for frame in JUNK[junk]:
        hostile.supervisor._shared._put(*frame)
    while await theirs.receive():
        pass
    await pass_both_ways(near, far)
    await hostile.close()
    await until(lambda: tunnels.grid.context.switchboard.open_tunnels == 1)


@pytest.mark.attack(
    "reads nothing of its session while the cluster's other customers work", attacker="a customer",
    gain="one window of 128 KiB at the services", defence="each tunnel of a supervisor has windows of its own",
)  # fmt: skip
async def test_a_customer_that_does_not_read_holds_up_its_own_tunnel_only(tunnels: Tunnels) -> None:
    slow, flooded = await tunnels.opened()
    near, far = await tunnels.opened()
    size = 16 * 1024

    async def flood(socket: TunnelSocket) -> None:
        while True:
            await socket.send(bytes(size))

    flooding = asyncio.create_task(flood(flooded))
    for number in range(100):
        await pass_both_ways(near, far, b"message %d" % number)
    for _ in range(8 * FIRST_WINDOW // size):
        assert await slow.receive() == bytes(size)
    flooding.cancel()


@pytest.mark.deep
@pytest.mark.attack(
    "revokes session keys while the supervisor joins the sessions that they opened", attacker="a customer",
    gain="nothing: the sessions of the cluster's other customers continue",
    defence="a token that was given out does not count as invented when its session has ended",
)  # fmt: skip
async def test_revoked_session_keys_end_no_session_of_others(tunnels: Tunnels) -> None:
    near, far = await tunnels.opened()
    board, shared = tunnels.grid.context.switchboard, tunnels.supervisor._shared
    job = tunnels.grid.chain.jobs_by_id[1]
    assert shared is not None
    opening = tunnels.grid.customer.open_tunnel(job).opening
    refused = 0
    while refused < 1.2 * MOST_REFUSED:
        before = set(board._ends)
        for _ in range(board.limits.per_job - 1):
            board.invite(job, opening, "a key")
        of_supervisor = [token for token, (_, side) in board._ends.items() if side and token not in before]
        await board.end_of(["a key"])
        await until(lambda: board.open_tunnels <= 1, pause_s=0.001)
        for late in await asyncio.gather(*map(shared.join, of_supervisor)):
            assert late is None or await late.receive() == b""
        refused += len(of_supervisor)
    assert not board._past
    await pass_both_ways(near, far)
