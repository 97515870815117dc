"""The HTTP side of the signer: `signer` (JSON-RPC), `signer/session` (token for session), `signer/kept`."""

from __future__ import annotations

import json
import logging
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from deepgrid.errors import ContractError, GridError
from deepgrid.web.signer.access import Access, Denied, origin_of
from deepgrid.web.signer.kept import Kept
from deepgrid.web.signer.refused import FAILED, MALFORMED, REVERTED, Refused
from deepgrid.web.signer.signer import Signer

LARGEST_BODY = 1024 * 1024  # a workflow file of 256 KiB, with escaped characters

logger = logging.getLogger(__name__)


def signer_routes(signer: Signer, access: Access, kept: Kept) -> list[Route]:
    """Routes of a signer whose callers `access` admits, and of what their pages keep."""

    async def present(_request: Request) -> Response:
        return Response(status_code=204, headers={"Cache-Control": "no-store"})

    async def exchange(request: Request) -> Response:
        try:
            body = await _body(request)
            secret = access.exchange(request, str(body.get("token", "")))
        except Denied as denied:
            return _denied(denied)
        return JSONResponse({"session": secret}, headers={"Cache-Control": "no-store"})

    async def call(request: Request) -> Response:
        try:
            access.require(request)
            body = await _body(request)
        except Denied as denied:
            return _denied(denied)
        return await _answered(signer, body, origin_of(request))

    async def keep(request: Request) -> Response:
        try:
            access.require(request)
            body = await _body(request)
        except Denied as denied:
            return _denied(denied)
        return _kept(kept, body)

    return [
        Route("/signer", present, methods=["GET"]),
        Route("/signer", call, methods=["POST"]),
        Route("/signer/session", exchange, methods=["POST"]),
        Route("/signer/kept", keep, methods=["POST"]),
    ]


async def _answered(signer: Signer, body: dict[str, Any], origin: str) -> Response:
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


def _kept(kept: Kept, body: dict[str, Any]) -> Response:
    """All that is kept, after these changes."""
    try:
        if "changes" in body:
            kept.change(body["changes"])
            return Response(status_code=204)
    except (OSError, ValueError) as error:
        logger.warning("the page's texts were not kept: %s", error)
        return _denied(Denied(507, "This cannot be kept."))
    return JSONResponse({"kept": kept.all()}, headers={"Cache-Control": "no-store"})


async def _body(request: Request) -> dict[str, Any]:
    """The JSON object of a request. Raises Denied."""
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


def _denied(denied: Denied) -> Response:
    return JSONResponse({"error": str(denied)}, denied.status, headers={"Cache-Control": "no-store"})
