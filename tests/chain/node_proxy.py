"""A proxy that plays other nodes in front of the real one: without some feature, busy, lagging, or losing answers.

A mode is a subclass of `Mode`. It sees each HTTP request and each JSON-RPC request in it, and counts what it did.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from tests.chain.anvil import Anvil

Json = dict[str, Any]


def error(code: int, message: str) -> Json:
    return {"code": code, "message": message}


class Mode:
    """The real node, as it is."""

    def __init__(self, anvil: Anvil) -> None:
        self.anvil = anvil
        self.asked = 0  # HTTP requests
        self.played = 0  # how often the node was not itself

    def instead(self, body: Any) -> web.Response | None:
        """Return an answer to a whole HTTP request that never reaches the real node."""
        return None

    def refusal(self, one: Json) -> Json | None:
        """Return the error of one request."""
        return None

    async def forwarded(self, asked: list[Json], forward: Forward) -> list[Json]:
        """Return the real node's answers."""
        return await forward(asked)

    def result(self, one: Json, result: Any) -> Any:
        """Return what the caller sees of a result."""
        return result

    async def answered(self, body: Any) -> bool:
        """Return whether the caller gets the answer."""
        return True


class Forward:
    """Sends requests to the real node."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url

    async def __call__(self, asked: list[Json]) -> list[Json]:
        if not asked:
            return []
        async with self._session.post(self._url, json=asked) as response:
            by_id = {answer["id"]: answer for answer in await response.json()}
        return [by_id[one["id"]] for one in asked]


@asynccontextmanager
async def playing(mode: Mode) -> AsyncIterator[str]:
    """Yield the URL of the real node in this mode."""
    async with aiohttp.ClientSession(trust_env=False) as session:
        forward = Forward(session, mode.anvil.url)

        async def serve(request: web.Request) -> web.StreamResponse:
            body = await request.json()
            mode.asked += 1
            instead = mode.instead(body)
            if instead is not None:
                mode.played += 1
                return instead
            answers = await _answers(mode, body if isinstance(body, list) else [body], forward)
            if not await mode.answered(body):
                mode.played += 1
                assert request.transport is not None
                request.transport.abort()
            return web.json_response(answers if isinstance(body, list) else answers[0])

        app = web.Application(client_max_size=2**24)
        app.router.add_post("/{rest:.*}", serve)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        try:
            yield f"http://127.0.0.1:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


async def _answers(mode: Mode, asked: list[Json], forward: Forward) -> list[Json]:
    refused = {one["id"]: found for one in asked if (found := mode.refusal(one)) is not None}
    mode.played += len(refused)
    answers = {
        one["id"]: one for one in await mode.forwarded([one for one in asked if one["id"] not in refused], forward)
    }
    found = []
    for one in asked:
        answer = {"jsonrpc": "2.0", "id": one["id"]}
        if one["id"] in refused:
            answer["error"] = refused[one["id"]]
        elif "error" in answers[one["id"]]:
            answer["error"] = answers[one["id"]]["error"]
        else:
            answer["result"] = mode.result(one, answers[one["id"]]["result"])
        found.append(answer)
    return found


class WithoutFees(Mode):
    """A chain from before EIP-1559: no base fee, no tip, and only transactions of the first type."""

    def refusal(self, one: Json) -> Json | None:
        if one["method"] in ("eth_maxPriorityFeePerGas", "eth_feeHistory"):
            return error(-32601, f"the method {one['method']} does not exist/is not available")
        if one["method"] == "eth_sendRawTransaction" and int(one["params"][0][2:4], 16) < 0x80:
            return error(-32000, "transaction type not supported")
        return None

    def result(self, one: Json, result: Any) -> Any:
        if one["method"].startswith("eth_getBlockBy") and result is not None:
            return {name: value for name, value in result.items() if name != "baseFeePerGas"}
        return result


class WithoutBatches(Mode):
    """A node that reads one request at a time, and refuses lists with an HTTP status."""

    def instead(self, body: Any) -> web.Response | None:
        return web.Response(status=400, text="Bad Request") if isinstance(body, list) else None


class SmallBatches(Mode):
    """A node that takes three requests at once, and refuses more as JSON-RPC prescribes."""

    def instead(self, body: Any) -> web.Response | None:
        if not isinstance(body, list) or len(body) <= 3:
            return None
        return web.json_response({"jsonrpc": "2.0", "id": None, "error": error(-32600, "batch too large")})


class Busy(Mode):
    """A node that answers 429 at first and then from time to time, even during the pause that it asks for."""

    every = 60
    under_way_s = 0.2  # requests that were sent before the refusal arrived
    pause_s: int | None = None

    def __init__(self, anvil: Anvil) -> None:
        super().__init__(anvil)
        self.early = 0  # requests before the end of a `Retry-After`
        self._quiet_until = self._refused_at = 0.0

    def instead(self, body: Any) -> web.Response | None:
        now = asyncio.get_running_loop().time()
        is_early = now < self._quiet_until
        self.early += is_early and now > self._refused_at + self.under_way_s
        if not is_early and self.asked % self.every != 1:
            return None
        if self.pause_s is None:
            return web.Response(status=429, text="slow down")
        if not is_early:
            self._quiet_until, self._refused_at = now + self.pause_s, now
        return web.Response(status=429, text="slow down", headers={"Retry-After": str(self.pause_s)})


class BusyForASecond(Busy):
    """The same node, which says when to ask again."""

    pause_s = 1


class Limited(Mode):
    """A node that refuses single requests with JSON-RPC's code for limits, the first one too."""

    def __init__(self, anvil: Anvil) -> None:
        super().__init__(anvil)
        self._count = 0

    def refusal(self, one: Json) -> Json | None:
        self._count += 1
        return error(-32005, "limit exceeded") if self._count % 40 == 1 else None


class SmallRanges(Mode):
    """A node that returns the logs of ten blocks at most."""

    blocks = 10

    def refusal(self, one: Json) -> Json | None:
        if one["method"] != "eth_getLogs":
            return None
        newest = int(self.anvil.call("eth_blockNumber"), 16)
        first, last = (newest if at == "latest" else int(at, 16) for at in _range(one))
        what = f"query exceeds max block range: limited to {self.blocks} blocks"
        return error(-32005, what) if last - first >= self.blocks else None


def _range(one: Json) -> tuple[str, str]:
    wanted = one["params"][0]
    return wanted["fromBlock"], wanted["toBlock"]


# The position of the block among the parameters of requests that name a block.
PLACES = {"eth_getBlockByNumber": 0, "eth_call": 1, "eth_getTransactionCount": 1, "eth_estimateGas": 1,
          "eth_getCode": 1, "eth_getBalance": 1}  # fmt: skip


class LaggingPool(Mode):
    """Two nodes behind one address that answer in turn. The second one is three blocks behind."""

    lag = 3

    async def forwarded(self, asked: list[Json], forward: Forward) -> list[Json]:
        if self.asked % 2 or not asked:
            return await forward(asked)
        self.played += 1
        ((height),) = await forward([{"jsonrpc": "2.0", "id": 0, "method": "eth_blockNumber", "params": []}])
        newest = max(0, int(height["result"], 16) - self.lag)
        answers = await forward([self._as_of(one, newest) for one in asked])
        return [self._known(one, answer, newest) for one, answer in zip(asked, answers, strict=True)]

    def _as_of(self, one: Json, newest: int) -> Json:
        params = list(one["params"])
        if one["method"] == "eth_getLogs":
            first, last = _range(one)
            last = hex(newest) if last == "latest" or int(last, 16) > newest else last
            return {**one, "params": [{**params[0], "toBlock": last, "fromBlock": min(first, last, key=_number)}]}
        place = PLACES.get(one["method"])
        if place is None:
            return one
        if len(params) <= place:
            params.append("latest")
        if params[place] == "latest":
            params[place] = hex(newest)
        return {**one, "params": params}

    def _known(self, one: Json, answer: Json, newest: int) -> Json:
        """Return the answer as of a node that does not have newer blocks."""
        result, place = answer.get("result"), PLACES.get(one["method"])
        if one["method"] == "eth_blockNumber":
            return {**answer, "result": hex(newest)}
        if one["method"] == "eth_getTransactionReceipt" and result and int(result["blockNumber"], 16) > newest:
            return {**answer, "result": None}
        named = one["params"][place] if place is not None and len(one["params"]) > place else "latest"
        if named.startswith("0x") and int(named, 16) > newest:
            if one["method"] == "eth_getBlockByNumber":
                return {**answer, "result": None}
            return {"jsonrpc": "2.0", "id": one["id"], "error": error(-32000, "header not found")}
        return answer


def _number(block: str) -> int:
    return int(block, 16)


class DroppedAnswers(Mode):
    """A node whose answer is lost from time to time, after it did what it was asked."""

    async def answered(self, body: Any) -> bool:
        return self.asked % 7 != 0


class Reorganising(Mode):
    """A chain that replaces its last three blocks with empty ones after every fourth transaction."""

    def __init__(self, anvil: Anvil) -> None:
        super().__init__(anvil)
        self._sent = 0

    async def answered(self, body: Any) -> bool:
        if "eth_sendRawTransaction" in json.dumps(body):
            self._sent += 1
            if self._sent % 4 == 0 and self.played < 12:
                self.played += 1
                await asyncio.to_thread(self.anvil.call, "anvil_reorg", 3, [])
        return True
