"""A recorded grid: a small server that answers as a node and the grid's services answered when they were recorded.

`Recorder` stands before a live grid and notes each answer. `Replay` gives the same answers to the same requests. So
tests can compare exactly what clients show of a grid. The key of a request to a node is its method and parameters. The
key of a request to the services is its method, path and query. Signatures are not checked.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp import web

from deepgrid.chain.book import AddressBook

RECORDED = Path(__file__).parent / "recorded"
HEADERS = ("X-Next-Offset", "X-Final", "X-Claimed-At", "X-Offset", "Content-Type")


class Replay:
    """A server with recorded answers, on a free port.

    Attributes:
        recording: The answers of the node (`rpc`) and of the services (`services`), and further values of the
        recording.
        unknown: Requests without a recorded answer. They are refused.
        broken: Whether each request is answered by status 503.
    """

    def __init__(self, recording: dict[str, Any]) -> None:
        self.recording = recording
        self.unknown: list[str] = []
        self.broken = False
        self._flows = asyncio.Event()
        self._flows.set()
        self._closed = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.url = ""

    @classmethod
    def of(cls, name: str) -> Self:
        """Return the recording of this name."""
        return cls(json.loads((RECORDED / f"{name}.json").read_text()))

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/", self._node)
        app.router.add_route("*", "/{path:.*}", self._services)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        self.release()
        self._closed.set()
        await self._runner.cleanup()

    def book(self, where: Path) -> Path:
        """Write the grid's address book, which leads to this server."""
        here = {"rpc_url": self.url, "definitions_url": self.url, "logs_url": self.url}
        return AddressBook.model_validate(self.recording["book"] | here).save(where)

    def hold(self) -> None:
        """Keep all further requests waiting."""
        self._flows.clear()

    def release(self) -> None:
        """Answer again, including the requests that wait."""
        self._flows.set()

    @property
    def flows(self) -> bool:
        """Whether requests are answered now."""
        return self._flows.is_set()

    # -- answers -----------------------------------------------------------------------------

    async def _node(self, request: web.Request) -> web.Response:
        asked = await request.json()
        await self._flows.wait()
        if self.broken:
            return web.Response(status=503)
        if isinstance(asked, list):
            return web.json_response([await self._answer(one) for one in asked])
        return web.json_response(await self._answer(asked))

    async def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        key = f"{asked['method']} {json.dumps(asked['params'], sort_keys=True)}"
        return {"jsonrpc": "2.0", "id": asked["id"]} | await self.rpc(key, asked)

    async def _services(self, request: web.Request) -> web.Response:
        body = await request.read()
        await self._flows.wait()
        if self.broken:
            return web.Response(status=503)
        key = f"{request.method} {request.path_qs}"
        answer = await self.service(key, request, body)
        if "wait=0" not in key and "/log?" in key and not answer["body"] and answer["headers"].get("X-Final") != "true":
            await self._closed.wait()  # like the log service until there is more output, which never comes here
        headers = answer["headers"]
        return web.Response(status=answer["status"], headers=headers, body=answer["body"].encode())

    async def rpc(self, key: str, asked: dict[str, Any]) -> dict[str, Any]:
        """Return the result or the error of a node."""
        answer: dict[str, Any] | None = self.recording["rpc"].get(key)
        if answer is None and asked["method"] == "eth_blockNumber":
            return {"result": self.head}
        if answer is None:
            self.unknown.append(key)
        return answer or {"error": {"code": -32000, "message": f"not recorded: {asked['method']}"}}

    @property
    def head(self) -> str:
        """The number of the newest block, as nodes write it."""
        blocks = (answer["result"] for key, answer in self.recording["rpc"].items() if key.startswith("eth_getBlockBy"))
        return max((str(block["number"]) for block in blocks), key=lambda number: int(number, 16))

    async def service(self, key: str, request: web.Request, body: bytes) -> dict[str, Any]:
        """Return the answer of the services: status, headers and body."""
        answer: dict[str, Any] | None = self.recording["services"].get(key)
        if answer is None:
            self.unknown.append(key)
        return answer or {"status": 404, "headers": {}, "body": '{"error": "not recorded"}'}


class Recorder(Replay):
    """Asks a live grid, and notes its answers.

    `ahead_s` is how far the chain's clock is ahead: remarks get the chain's time.
    """

    def __init__(self, book: AddressBook, **beside: object) -> None:
        book_without_addresses = book.model_dump(mode="json", exclude={"rpc_url", "definitions_url", "logs_url"})
        super().__init__({"book": book_without_addresses, "rpc": {}, "services": {}} | beside)
        self._live = book
        self.ahead_s = 0

    async def __aenter__(self) -> Self:
        self._client = aiohttp.ClientSession()
        return await super().__aenter__()

    async def __aexit__(self, *_: object) -> None:
        await super().__aexit__()
        await self._client.close()

    async def rpc(self, key: str, asked: dict[str, Any]) -> dict[str, Any]:
        async with self._client.post(self._live.rpc_url, json=asked) as response:
            answer = await response.json()
        kept = {name: answer[name] for name in ("result", "error") if name in answer}
        self.recording["rpc"][key] = kept
        return kept

    async def service(self, key: str, request: web.Request, body: bytes) -> dict[str, Any]:
        headers = {name: value for name, value in request.headers.items() if name not in ("Host", "Content-Length")}
        url = self._live.definitions_url + request.path_qs
        async with self._client.request(request.method, url, headers=headers, data=body) as response:
            text = (await response.read()).decode()
            kept = {name: response.headers[name] for name in HEADERS if name in response.headers}
        if "/notices" in key:
            said = json.loads(text)
            said["notices"] = [one | {"at": one["at"] + self.ahead_s} for one in said["notices"]]
            text = json.dumps(said)
        answer = {"status": response.status, "headers": kept, "body": text}
        self.recording["services"][key] = answer
        return answer

    def save(self, name: str) -> None:
        """Write the recording."""
        RECORDED.mkdir(exist_ok=True)
        (RECORDED / f"{name}.json").write_text(json.dumps(self.recording, indent=1, sort_keys=True) + "\n")
