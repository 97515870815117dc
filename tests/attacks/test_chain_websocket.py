"""The WebSocket of the one-machine grid's node: the same methods as over HTTP, and subscriptions."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest

from deployments.onemachine.node.node_filter import LONGEST_MESSAGE, MOST_CLIENTS, SUBSCRIBING
from tests.attacks.node_target import CHEATS, RICH, THIEF, VICTIM, Target, call, started

ZERO = "0x" + "00" * 20


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    yield from started(tmp_path_factory.mktemp("node"))


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as opened:
        yield opened


async def ask(client: aiohttp.ClientWebSocketResponse, request: object) -> Any:
    """Return the next message of the node after this request."""
    await client.send_str(request if isinstance(request, str) else json.dumps(request))
    return json.loads((await client.receive(timeout=60)).data)


@pytest.mark.attack(
    "calls test methods of the node over its WebSocket, hides them in a batch, or subscribes to other subjects",
    attacker="any account on the grid's machine",
    gain="an error; the connection continues",
    defence="the same list of methods as over HTTP; one request per message; subscriptions to logs and blocks only",
)
async def test_only_listed_methods_are_passed(target: Target, session: aiohttp.ClientSession) -> None:
    async with session.ws_connect(target.anvil.ws_url) as client:
        for cheat in (one for one in CHEATS if one["method"] not in SUBSCRIBING):
            assert (await ask(client, cheat))["error"]["code"] == -32601
        batch = [call("eth_chainId"), CHEATS[0]]
        odd = call("eth_subscribe", "newPendingTransactions")
        for request in (batch, odd, call("eth_subscribe"), call("eth_subscribe", {"logs": 1}), "{", "[" * 100_000, "1"):
            assert (await ask(client, request))["error"]["code"] in (-32600, -32700)
        assert (await ask(client, call("eth_chainId")))["result"] == hex(179188)
    assert target.balance(THIEF) == 0 and target.balance(VICTIM) == RICH


@pytest.mark.attack(
    "sends a long message, a binary one, or opens very many WebSockets",
    attacker="any account on the grid's machine",
    gain="the connection is closed; others are served",
    defence=f"at most {LONGEST_MESSAGE} bytes per message and {MOST_CLIENTS} clients",
)
async def test_clients_are_bounded(target: Target, session: aiohttp.ClientSession) -> None:
    for send in ("x" * (LONGEST_MESSAGE + 1), b"\xff"):
        async with session.ws_connect(target.anvil.ws_url) as client:
            await (client.send_str(send) if isinstance(send, str) else client.send_bytes(send))
            assert (await client.receive(timeout=60)).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)
    held = [await session.ws_connect(target.anvil.ws_url) for _ in range(MOST_CLIENTS)]
    with pytest.raises(aiohttp.WSServerHandshakeError, match="503"):
        await session.ws_connect(target.anvil.ws_url)
    for one in held:
        await one.close()
    assert "result" in target.ask(call("eth_chainId"))


async def test_blocks_and_events_are_told_until_the_subscription_ends(
    target: Target, session: aiohttp.ClientSession
) -> None:
    """Existing clients send the same address twice, because two of their contracts are one here."""
    async with session.ws_connect(target.anvil.ws_url) as client:
        logs = await ask(client, call("eth_subscribe", "logs", {"address": [ZERO, ZERO]}))
        assert logs["result"].startswith("0x")
        heads = (await ask(client, call("eth_subscribe", "newHeads", number=2)))["result"]
        told = json.loads((await client.receive(timeout=60)).data)
        assert told["method"] == "eth_subscription" and told["params"]["subscription"] == heads
        await client.send_str(json.dumps(call("eth_unsubscribe", heads, number=3)))
        while (answer := json.loads((await client.receive(timeout=60)).data)).get("id") != 3:
            assert answer["params"]["subscription"] == heads
        assert answer["result"] is True
