"""The HTTP side of the signer: `signer` (JSON-RPC), `signer/session` (token for session), `signer/storage`, and
`signer/forward` (a port of a job on this machine).
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from deepgrid.errors import ContractError, GridError
from deepgrid.files.private_files import replace_file
from deepgrid.plain_text import plain
from deepgrid.signer.access import Access, Denied, origin_of
from deepgrid.signer.forwards import Forwards
from deepgrid.signer.refused import FAILED, MALFORMED, REVERTED, Refused
from deepgrid.signer.signer import Signer

MOST_BYTES = 8 * 1024 * 1024
FILE = "file:"  # begins the names of files of earlier jobs, which can be dropped
LARGEST_BODY = 1024 * 1024  # a workflow file of 256 KiB, with escaped characters

logger = logging.getLogger(__name__)


class PageStorage:
    """Texts by name, in a file that only its owner can read."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def all(self) -> dict[str, str]:
        """Return all texts; none if the file is missing or damaged. Raises OSError if it cannot be read."""
        try:
            return _texts(json.loads(self._file.read_bytes()))
        except (FileNotFoundError, ValueError):
            return {}

    def change(self, changes: dict[str, Any]) -> None:
        """Store these texts too, and forget names without a text. The oldest files make room if it is full.

        Raises ValueError if that is too much, and OSError.
        """
        added = _texts(changes)
        texts = {name: text for name, text in self.all().items() if name not in changes} | added
        sizes = {name: len(json.dumps({name: text})) for name, text in texts.items()}  # with separators and braces
        excess = sum(sizes.values()) - MOST_BYTES
        for name in sizes:  # oldest first
            if excess > 0 and name.startswith(FILE) and name not in added:
                excess -= sizes[name]
                del texts[name]
        if excess > 0:
            raise ValueError("too much is stored")
        replace_file(self._file, json.dumps(texts).encode())


def _texts(named: Any) -> dict[str, str]:
    """Return the values, which must be texts. Raises ValueError if these are no named values."""
    if not isinstance(named, dict):
        raise ValueError("these are no named values")
    return {name: text for name, text in named.items() if isinstance(text, str)}


def signer_app(signer: Signer, access: Access, storage: PageStorage, forwards: Forwards, *further: Route) -> Starlette:
    """Return the application of a signer whose callers `access` admits, of their storage, and of their ports."""

    async def present(_request: Request) -> Response:
        return Response(status_code=204, headers={"Cache-Control": "no-store"})

    async def exchange(request: Request) -> Response:
        body = await _body(request)
        secret = access.exchange(request, str(body.get("token", "")))
        return JSONResponse({"session": secret}, headers={"Cache-Control": "no-store"})

    async def call(request: Request) -> Response:
        return await _answer_call(signer, await _admitted_body(access, request), origin_of(request))

    async def store(request: Request) -> Response:
        return _change_storage(storage, await _admitted_body(access, request))

    async def forward(request: Request) -> Response:
        return await _open_port(forwards, await _admitted_body(access, request))

    routes = [
        Route("/signer", present, methods=["GET"]),
        Route("/signer", call, methods=["POST"]),
        Route("/signer/session", exchange, methods=["POST"]),
        Route("/signer/storage", store, methods=["POST"]),
        Route("/signer/forward", forward, methods=["POST"]),
    ]
    return Starlette(routes=[*routes, *further], exception_handlers={Denied: _deny})


async def _deny(_request: Request, denied: Exception) -> Response:
    assert isinstance(denied, Denied)
    return denied.answer()


async def _admitted_body(access: Access, request: Request) -> dict[str, Any]:
    """Return the JSON object of a request with a session. Raises Denied."""
    access.require(request)
    return await _body(request)


async def _answer_call(signer: Signer, body: dict[str, Any], origin: str) -> Response:
    method, params = body.get("method"), body.get("params") or []
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": body.get("id")}
    try:
        if not isinstance(method, str) or not isinstance(params, list):
            raise Refused("This is not a JSON-RPC request.", MALFORMED)
        reply["result"] = await signer.call(method, params, origin)
    except Refused as refused:
        logger.warning("the signer refused a call: %s", refused)
        reply["error"] = {"code": refused.code, "message": str(refused)}
    except GridError as error:
        facts = {"name": getattr(error, "name", ""), "next_step": error.next_step, "transient": error.transient}
        code = REVERTED if isinstance(error, ContractError) else FAILED
        reply["error"] = {"code": code, "message": error.message, "data": facts}
    return JSONResponse(reply, headers={"Cache-Control": "no-store"})


async def _open_port(forwards: Forwards, body: dict[str, Any]) -> Response:
    """Answer with the address of a port of a job. Raises Denied."""
    try:
        return JSONResponse(
            {"url": await forwards.url(body.get("job"), body.get("port"))}, headers={"Cache-Control": "no-store"}
        )
    except GridError as error:
        raise Denied(502, plain(f"{error.message} {error.next_step}".strip())) from error


def _change_storage(storage: PageStorage, body: dict[str, Any]) -> Response:
    """Change the storage; without changes, answer with all of it. Raises Denied."""
    try:
        if "changes" not in body:
            return JSONResponse({"texts": storage.all()}, headers={"Cache-Control": "no-store"})
        storage.change(body["changes"])
    except (OSError, ValueError) as error:
        logger.warning("the storage of the page failed: %s", error)
        raise Denied(507, "`dps web` cannot store this; its log says why.") from error
    return Response(status_code=204)


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request. Raises Denied."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Denied(415, "The request is not JSON.")
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > LARGEST_BODY:
            raise Denied(413, "The request is too large.")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Denied(400, "The request is not a JSON object.")
    return body
