"""The web app's backend on a free port, with fake services behind it and a node that counts requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from deepgrid.chain.book import AddressBook
from deepgrid.chain.node.contract import interface
from deepgrid.gateway.backend import WebApp, open_web
from deepgrid.gateway.settings import WebLimits, WebSettings
from deepgrid.services.app import ServicesSettings
from deepgrid.services.edge.listeners import address_of, open_listeners
from deepgrid.services.serve import listening

BUILD = {
    "index.html": b"<!doctype html><title>deepgrid</title><script type=module src=./assets/app-a1b2.js></script>",
    "assets/app-a1b2.js": b"console.log('hello');\n" * 50,
    "build.json": b'{"inputs": "abc"}',
}
BOOK = AddressBook(
    chain_id=5, rpc_url="http://127.0.0.1:1", meta_scheduler="0x" + "01" * 20, credit="0x" + "02" * 20,
    provider_manager="0x" + "03" * 20, definitions_url="http://127.0.0.1:1", logs_url="http://127.0.0.1:1",
)  # fmt: skip
QUICK = WebLimits(gather_s=0.005, head_every_s=0.05)
SECRET_PATH = "/v3/the-access-key"


@dataclass
class Backend:
    """One running backend, with its own client."""

    http: httpx.AsyncClient
    app: WebApp
    book: AddressBook

    async def rpc(self, method: str, *params: Any, **fields: Any) -> dict[str, Any]:
        """Return the answer to one call."""
        call = {"jsonrpc": "2.0", "id": 7, "method": method, "params": list(params)} | fields
        found: dict[str, Any] = (await self.http.post("/rpc", json=call)).json()
        return found

    async def batch(self, *calls: tuple[str, list[Any]]) -> list[dict[str, Any]]:
        """Return the answers to a batch."""
        body = [{"jsonrpc": "2.0", "id": n, "method": name, "params": params} for n, (name, params) in enumerate(calls)]
        found: list[dict[str, Any]] = (await self.http.post("/rpc", json=body)).json()
        return found

    async def code(self, method: str, *params: Any) -> int:
        """Return the code of the error that the call gets."""
        return int((await self.rpc(method, *params))["error"]["code"])

    def call_of(self, name: str, *arguments: Any, contract: str = "MetaScheduler") -> dict[str, str]:
        """Return the first parameter of eth_call."""
        addresses = {"MetaScheduler": self.book.meta_scheduler, "Credit": self.book.credit}
        return {"to": addresses[contract], "data": interface(contract).encode(name, *arguments)}


async def services(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer requests that do not belong to the web app."""
    await JSONResponse({"handed on": scope["path"]}, 404)(scope, receive, send)


@asynccontextmanager
async def running(
    book: AddressBook, folder: Path, limits: WebLimits = QUICK, **settings: Any
) -> AsyncIterator[Backend]:
    """Yield the backend of the grid of `book`, with a build in `folder` unless `static` names another one."""
    static = write_build(folder / "static")
    chosen = WebSettings(**{"static": static, "limits": limits, **settings})
    of_server = ServicesSettings("sqlite://", folder / "secret", port=0)
    with open_listeners(of_server) as listeners:
        async with (
            open_web(services, book, chosen) as app,
            listening(app, listeners),
            httpx.AsyncClient(base_url=f"http://{address_of(listeners.http)}", trust_env=False, timeout=60) as http,
        ):
            yield Backend(http, app, book)


def write_build(folder: Path) -> Path:
    """Return a small build with one compressed copy."""
    import gzip

    for name, content in BUILD.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    script = folder / "assets/app-a1b2.js"
    script.with_name(f"{script.name}.gz").write_bytes(gzip.compress(script.read_bytes()))
    return folder


def moved(book: AddressBook, url: str) -> AddressBook:
    """Return the same book with another node."""
    return book.model_copy(update={"rpc_url": url})


__all__ = ["BOOK", "QUICK", "SECRET_PATH", "Backend", "moved", "replace", "running", "write_build"]
