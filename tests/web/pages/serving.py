"""Serves the built pages as the services do, with a recorded grid behind them.

The recordings are from the same day as the terminal app's. The pages name a block in each read. All blocks that a page
can see are the newest one of the recording, so reads are stored without the block.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from deepgrid.chain.book import AddressBook
from deepgrid.gateway.answering import POLICY
from tests.client.replay import Recorder, Replay

STATIC = Path(__file__).parents[3] / "deepgrid" / "gateway" / "static"
RECORDED = Path(__file__).parent / "recorded"
TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json"}


def recording(name: str) -> dict[str, Any]:
    """Return the recording of this name."""
    found: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text())
    return found


class PageServer:
    """The pages and a relay with the answers of `grid`, on a free port.

    Attributes:
        url: The address of the pages. held: Whether reads of the chain stay unanswered.
        broken: Whether reads of the chain are answered by status 503.
        unknown: Reads without a recorded answer.
    """

    def __init__(self, grid: Replay) -> None:
        self.grid = grid
        self.held = self.broken = False
        self._closed = asyncio.Event()
        self.url = ""

    @property
    def unknown(self) -> list[str]:
        return self.grid.unknown

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/rpc", self._rpc)
        app.router.add_get("/v1/grid", self._grid)
        app.router.add_get("/{path:.*}", self._page)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed.set()
        await self._runner.cleanup()

    async def _rpc(self, request: web.Request) -> web.Response:
        if self.held:
            await self._closed.wait()
        if self.broken:
            return web.Response(status=503)
        return web.json_response([await self._answer(one) for one in await request.json()])

    async def _answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        params = asked["params"]
        if asked["method"] in ("eth_call", "eth_getBalance"):
            params = [params[0], "latest"]
        key = f"{asked['method']} {json.dumps(params, sort_keys=True)}"
        answer = await self.grid.rpc(key, {**asked, "params": params})
        return {"jsonrpc": "2.0", "id": asked["id"]} | answer

    async def _grid(self, _: web.Request) -> web.Response:
        book = self.grid.recording["book"]
        names = ("chain_id", "credit", "meta_scheduler", "provider_manager")
        return web.json_response(
            {name: book[name] for name in names} | {"local": False, "modules": False, "limits": {}}
        )

    async def _page(self, request: web.Request) -> web.Response:
        file = STATIC / (request.match_info["path"] or "index.html")
        if not file.resolve().is_relative_to(STATIC) or not file.is_file():
            return web.Response(status=404)
        headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
        return web.Response(body=file.read_bytes(), content_type=TYPES[file.suffix], headers=headers)


class PageRecorder(Recorder):
    """Records the pages' requests to a live grid."""

    def __init__(self, book: AddressBook, **beside: object) -> None:
        super().__init__(book, **beside)

    def save(self, name: str) -> None:
        RECORDED.mkdir(exist_ok=True)
        (RECORDED / f"{name}.json").write_text(json.dumps(self.recording, indent=1, sort_keys=True) + "\n")
