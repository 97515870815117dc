"""A node that lags some blocks behind: it forwards to the real node and hides its newest blocks."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import aiohttp
from aiohttp import web

HOST = "127.0.0.1"
# The position of the block among the parameters of requests that name a block.
NAMED = {"eth_getBlockByNumber": 0, "eth_call": 1, "eth_getTransactionCount": 1, "eth_estimateGas": 1, "eth_getCode": 1,
         "eth_getBalance": 1}  # fmt: skip


class LaggingNode:
    """Serves at `port` in its own thread, `blocks` behind the node at `url`, until it is closed."""

    def __init__(self, url: str, blocks: int) -> None:
        self._url = url
        self._blocks = blocks
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="lagging-node", daemon=True)
        self._thread.start()
        self.port: int = asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result()

    def close(self) -> None:
        """Stop serving."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> int:
        self._session = aiohttp.ClientSession(trust_env=False)
        app = web.Application()
        app.router.add_post("/{rest:.*}", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, 0)
        await site.start()
        port: int = self._runner.addresses[0][1]
        return port

    async def _end(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _answer(self, request: web.Request) -> web.Response:
        asked = await request.json()
        newest = max(
            0, int(await self._ask({"jsonrpc": "2.0", "id": 0, "method": "eth_blockNumber"}), 16) - self._blocks
        )
        many = asked if isinstance(asked, list) else [asked]
        answers = [
            self._known(one, answer, newest)
            for one, answer in zip(many, await self._forward(many, newest), strict=True)
        ]
        return web.json_response(answers if isinstance(asked, list) else answers[0])

    async def _forward(self, asked: list[dict[str, Any]], newest: int) -> list[dict[str, Any]]:
        async with self._session.post(self._url, json=[_of_block(one, newest) for one in asked]) as response:
            by_id = {answer["id"]: answer for answer in await response.json()}
        return [by_id[one["id"]] for one in asked]

    async def _ask(self, request: dict[str, Any]) -> str:
        async with self._session.post(self._url, json=request) as response:
            return str((await response.json())["result"])

    def _known(self, asked: dict[str, Any], answer: dict[str, Any], newest: int) -> dict[str, Any]:
        """Return the answer without the content of hidden blocks: their receipts are null."""
        result = answer.get("result")
        if asked["method"] == "eth_blockNumber":
            return {**answer, "result": hex(newest)}
        if asked["method"] == "eth_getTransactionReceipt" and result and int(result["blockNumber"], 16) > newest:
            return {**answer, "result": None}
        return answer


def _of_block(asked: dict[str, Any], newest: int) -> dict[str, Any]:
    """Return the request with the newest visible block in place of the newest block."""
    place = NAMED.get(asked["method"])
    params = list(asked.get("params", []))
    if asked["method"] == "eth_estimateGas" and len(params) == 1:
        params.append("latest")
    if place is None or len(params) <= place or params[place] != "latest":
        return asked
    params[place] = hex(newest)
    return {**asked, "params": params}
