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
    """`reply` names the answers. Each eth_call returns the number of bytes of `filling` that its data names.

    Hashes name the `fork`. A node that `is_behind` has no logs yet, and does not say so.
    """

    url: str = ""
    reply: str = "a block"
    fork: str = "ab"
    filling: str = "00"
    head: int = NUMBER
    is_behind: bool = False

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
            case "status 429":
                self.reply = "a block"
                return web.Response(status=429, headers={"Retry-After": "1"})
            case "no batches: 400" if isinstance(body, list):
                return web.Response(status=400, text="Bad Request")
            case "no batches: error" if isinstance(body, list):
                refusal = {"code": -32600, "message": "batches are not supported"}
                return web.json_response({"jsonrpc": "2.0", "id": None, "error": refusal})
        many = body if isinstance(body, list) else [body]
        content = json.dumps([self._one(call, str(request.url)) for call in many])
        return web.Response(text=content, content_type="application/json")

    def _one(self, call: dict[str, Any], url: str) -> dict[str, Any]:
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": call["id"]}
        if self.reply == "busy" and call["method"] == "eth_call":
            self.reply = "a block"
            return answer | {"error": {"code": -32005, "message": "limit exceeded"}}
        if self.reply == "error with url":
            return answer | {"error": {"code": -32000, "message": f"project at {url} is over its limit"}}
        if call["method"] == "eth_call":
            return answer | {"result": "0x" + self.filling * int(call["params"][0]["data"], 16)}
        return answer | {"result": self._result(call["method"], call["params"])}

    def _result(self, method: str, params: list[Any]) -> Any:
        if method == "eth_blockNumber":
            return hex(0 if self.is_behind else self.head)
        if method == "eth_getLogs":
            return [] if self.is_behind else [{"transactionHash": self._hash(int(params[0]["toBlock"], 16))}]
        number = self.head if params[:1] in ([], ["latest"]) else int(params[0], 16)
        return {"number": hex(number), "hash": self._hash(number), "parentHash": self._hash(number - 1)}

    def _hash(self, number: int) -> str:
        return f"0x{number:032x}" + self.fork * 16


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
