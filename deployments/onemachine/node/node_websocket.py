"""The public access to the grid's node over WebSocket: the requests of the filter, and subscriptions to events.

Each client has a connection of its own to the node, because subscriptions belong to a connection. All of them end with
it. A client that does not read what it subscribed to is disconnected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from aiohttp import WSMsgType, web

from deployments.onemachine.node.node_socket import NodeSocket

MOST_CLIENTS = 100
LONGEST_MESSAGE = 256 * 2**10
PING_EVERY_S = 30.0
READ_WITHIN_S = 10.0

Screen = Callable[[str], tuple[bytes, bytes]]


class NodeWebSocket:
    """Serves WebSocket clients. `screen` parts a message into what the node gets and the answer to the rest."""

    def __init__(self, node: NodeSocket, screen: Screen) -> None:
        self._node = node
        self._screen = screen
        self._clients = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One client, until either side ends the connection."""
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
                passed, answer = self._screen(message.data)
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
