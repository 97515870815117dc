"""A node over HTTP with answers from the test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

NUMBER = 16


@dataclass
class OddNode:
    """`reply` names the answers. Each eth_call returns the number of bytes of `filling` that its data names."""

    url: str = ""
    reply: str = "a block"
    fork: str = "ab"
    filling: str = "00"

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        match self.reply:
            case "not json":
                return web.Response(text=f"<html>{self.url}</html>")
            case "status 500":
                return web.Response(status=500, text=str(request.url))
            case "status 413":
                return web.Response(status=413)
            case "a dict":
                return web.json_response({"error": {"code": 1, "message": str(request.url)}})
            case "a number":
                return web.json_response(7)
            case "hang up":
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
        many = body if isinstance(body, list) else [body]
        content = json.dumps([self._one(call, str(request.url)) for call in many])
        return web.Response(text=content, content_type="application/json")

    def _one(self, call: dict[str, Any], url: str) -> dict[str, Any]:
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": call["id"]}
        if self.reply == "error with url":
            return answer | {"error": {"code": -32000, "message": f"project at {url} is over its limit"}}
        if call["method"] == "eth_call":
            return answer | {"result": "0x" + self.filling * int(call["params"][0]["data"], 16)}
        block = {"number": hex(NUMBER), "hash": "0x" + self.fork * 32, "parentHash": "0x" + self.fork * 32}
        return answer | {"result": block}


@asynccontextmanager
async def odd_node() -> AsyncIterator[OddNode]:
    """Yield a node on a free port."""
    node = OddNode()
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{rest:.*}", node.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        node.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield node
    finally:
        await runner.cleanup()
