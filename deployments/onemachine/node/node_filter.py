"""The public access to the grid's node: it allows reading the chain and sending signed transactions.

A development node obeys every client: it gives away money, goes back in time, acts for any account. So it serves only
a private socket, and this process listens on the grid's RPC port. It accepts HTTP POST of one JSON-RPC request or a
batch. It serialises requests for the methods below again, forwards them, and refuses all others. The path /ws
serves WebSockets, for these methods and for subscriptions to events and blocks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import uvloop
from aiohttp import WSMsgType, web

from deployments.onemachine.daemons.probes import HOST
from deployments.onemachine.node.node_socket import NodeSocket

ALLOWED = frozenset([
    "eth_blockNumber", "eth_call", "eth_chainId", "eth_createAccessList", "eth_estimateGas", "eth_feeHistory",
    "eth_gasPrice", "eth_getBalance", "eth_getBlockByHash", "eth_getBlockByNumber", "eth_getBlockReceipts",
    "eth_getBlockTransactionCountByHash", "eth_getBlockTransactionCountByNumber", "eth_getCode", "eth_getLogs",
    "eth_getProof", "eth_getStorageAt", "eth_getTransactionByBlockHashAndIndex",
    "eth_getTransactionByBlockNumberAndIndex", "eth_getTransactionByHash", "eth_getTransactionCount",
    "eth_getTransactionReceipt", "eth_maxPriorityFeePerGas", "eth_sendRawTransaction", "eth_syncing",
    "net_listening", "net_version", "web3_clientVersion", "web3_sha3",
])  # fmt: skip
SUBSCRIBING = frozenset(["eth_subscribe", "eth_unsubscribe"])
SUBJECTS = ("logs", "newHeads")
LONGEST_BODY = 2 * 2**20
BODY_WITHIN_S = 10.0
LARGEST_BATCH = 1000
MOST_CLIENTS = 100
LONGEST_MESSAGE = 256 * 2**10
PING_EVERY_S = 30.0
READ_WITHIN_S = 10.0
NO_JSON, NO_REQUEST, NO_METHOD = -32700, -32600, -32601  # error codes of JSON-RPC

Json = dict[str, Any]


class Refused(Exception):
    """The request is refused with this answer."""

    def __init__(self, code: int, message: str, number: int | str | None = None) -> None:
        super().__init__(message)
        self.answer: Json = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def allowed_request(request: object, allowed: frozenset[str] = ALLOWED) -> Json:
    """Return the request to forward, with checked fields only. Raises Refused."""
    fields = request if isinstance(request, dict) else {}
    number, method, params = fields.get("id"), fields.get("method"), fields.get("params", [])
    if isinstance(number, bool) or not isinstance(number, int | str) or not isinstance(method, str):
        raise Refused(NO_REQUEST, "Invalid request: it needs an id and a method.")
    if method not in allowed:
        raise Refused(NO_METHOD, f"The method {method[:60]} is not available.", number)
    if not isinstance(params, list | dict):
        raise Refused(NO_REQUEST, "Invalid request: params is a list.", number)
    if method == "eth_subscribe" and (not isinstance(params, list) or params[:1] not in [[one] for one in SUBJECTS]):
        raise Refused(NO_REQUEST, f"Subscriptions are to {' or '.join(SUBJECTS)}.", number)
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def screen(message: str) -> tuple[bytes, bytes]:
    """Return the part of a WebSocket message for the node, and the answer to the rest. Each may be empty."""
    try:
        asked = json.loads(message, parse_constant=_refuse_number)
        if isinstance(asked, list):
            raise Refused(NO_REQUEST, "A WebSocket takes one request per message.")
        return _encode(allowed_request(asked, ALLOWED | SUBSCRIBING)), b""
    except Refused as refused:
        return b"", _encode(refused.answer)
    except (ValueError, RecursionError):
        return b"", _encode(Refused(NO_JSON, "The request is not JSON.").answer)


class NodeFilter:
    """Answers requests of any client, through the node's socket."""

    def __init__(self, node: NodeSocket) -> None:
        self._node = node

    async def answer(self, body: bytes) -> bytes:
        """Return the JSON answer. Raises OSError or TimeoutError when the node does not answer."""
        try:
            asked = json.loads(body, parse_constant=_refuse_number)
            if isinstance(asked, list):
                return await self._batch(asked)
            return await self._node.exchange(_encode(allowed_request(asked)))
        except Refused as refused:
            return _encode(refused.answer)
        except (ValueError, RecursionError):  # nested too deep, or a number that JSON cannot hold
            return _encode(Refused(NO_JSON, "The request is not JSON.").answer)

    async def _batch(self, asked: list[object]) -> bytes:
        if not 0 < len(asked) <= LARGEST_BATCH:
            raise Refused(NO_REQUEST, f"A batch has 1 to {LARGEST_BATCH} requests.")
        passed: list[Json] = []
        refused: list[Json] = []
        for one in asked:
            try:
                passed.append(allowed_request(one))
            except Refused as refusal:
                refused.append(refusal.answer)
        answer = await self._node.exchange(_encode(passed)) if passed else b"[]"
        if not refused:
            return answer
        answers = json.loads(answer)
        return _encode([*answers, *refused] if isinstance(answers, list) else answers)

    async def handle(self, request: web.Request) -> web.Response:
        """Handle one HTTP request."""
        try:
            async with asyncio.timeout(BODY_WITHIN_S):
                body = await request.read()
        except TimeoutError:
            raise web.HTTPRequestTimeout from None
        try:
            return web.Response(body=await self.answer(body), content_type="application/json")
        except TimeoutError:
            raise web.HTTPGatewayTimeout from None
        except OSError:
            raise web.HTTPBadGateway from None


class NodeWebSocket:
    """Serves WebSocket clients: the requests of the filter, and subscriptions to events.

    Each client has a connection of its own to the node, because subscriptions belong to a connection. All of them end
    with it. A client that does not read what it subscribed to is disconnected.
    """

    def __init__(self, node: NodeSocket) -> None:
        self._node = node
        self._clients = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one client until either side ends the connection."""
        if self._clients >= MOST_CLIENTS:
            raise web.HTTPServiceUnavailable(text=f"There are {MOST_CLIENTS} WebSocket clients already.")
        client = web.WebSocketResponse(max_msg_size=LONGEST_MESSAGE, heartbeat=PING_EVERY_S)
        self._clients += 1
        try:
            await client.prepare(request)
            await self._serve(client)
        finally:
            self._clients -= 1
        return client

    async def _serve(self, client: web.WebSocketResponse) -> None:
        try:
            reader, writer = await self._node.connect()
        except OSError:
            await client.close()
            return
        answers = asyncio.create_task(_forward(reader, client))
        try:
            async for message in client:
                if message.type is not WSMsgType.TEXT:
                    break
                passed, answer = screen(message.data)
                if answer:
                    await _send(client, answer)
                if passed:
                    writer.write(passed + b"\n")
                    await writer.drain()
        except (OSError, TimeoutError):
            pass  # one side is gone
        finally:
            answers.cancel()
            writer.close()
            with suppress(OSError, TimeoutError):
                await client.close()


async def _forward(node: asyncio.StreamReader, client: web.WebSocketResponse) -> None:
    """Send the node's answers and events to the client; then end the connection."""
    try:
        while True:
            await _send(client, (await node.readuntil(b"\n")).rstrip(b"\n"))
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        await client.close()


async def _send(client: web.WebSocketResponse, document: bytes) -> None:
    async with asyncio.timeout(READ_WITHIN_S):
        await client.send_str(document.decode())


async def serve(port: int, socket: Path) -> None:
    """Serve the loopback port until the process is ended."""
    node = NodeSocket(socket)
    app = web.Application(client_max_size=LONGEST_BODY)
    app.router.add_post("/", NodeFilter(node).handle)
    app.router.add_get("/ws", NodeWebSocket(node).handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, HOST, port).start()
    await asyncio.Event().wait()


def _encode(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def _refuse_number(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--socket", type=Path, required=True)
    options = parser.parse_args()
    uvloop.run(serve(options.port, options.socket))
