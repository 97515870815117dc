"""`/graphql`, its playground, and the `/health` that existing clients ask."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import OrderedDict
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse

from deepgrid.compat.compat_context import Compat, CompatContext, CompatLimits
from deepgrid.compat.graphql.job_input import FaultyInput, faults_of_lines
from deepgrid.compat.unsigned_definitions import store_anonymous
from deepgrid.errors import InputError
from deepgrid.lifecycle.definition_hash import SALT_BYTES
from deepgrid.sbatch import StoragePaths, render
from deepgrid.services import messages
from deepgrid.services.admission.fair_queue import FairQueue
from deepgrid.services.admission.gate import read_body
from deepgrid.services.admission.worker_pool import WorkerPool
from deepgrid.services.core import as_refusal
from deepgrid.services.refusal import Refusal
from deepgrid.services.signing.request_signing import ADDRESS_HEADER
from deepgrid.services.storage.database import Definition, UnownedDefinition
from deepgrid.workflow import from_canonical

GRAPHQL_PATH = "/graphql"
MOST_KEPT = 32  # answers, such as the schema for different tools
router = APIRouter()


class Examiner:
    """The one of a service. `pool` is closed with it."""

    def __init__(self, limits: CompatLimits) -> None:
        turns = FairQueue(limits.graphql_slots, limits.graphql_waiting_per_address, limits.check_wait_s)
        self.pool = WorkerPool("deepgrid.compat.graphql.operations", turns, limits.graphql_within_s)
        self._kept: OrderedDict[bytes, dict[str, Any]] = OrderedDict()

    async def examine(self, source: str, body: bytes) -> dict[str, Any]:
        """Return the result of `operations.execute` for a body from this source address. Raises Refusal."""
        key = hashlib.sha256(body).digest()
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        found: dict[str, Any] = json.loads(await self.pool.ask(source, body))
        if not found["needs"] and "errors" not in found["content"]:
            self._kept[key] = found
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return found


@cache
def _text() -> str:
    return Path(__file__).with_name("playground.html").read_text()


@cache
def _policy() -> str:
    """Return the Content-Security-Policy: the page's own script and style, and requests to this service."""
    parts = (f"{kind}-src '{_hash(kind)}'" for kind in ("script", "style"))
    return "; ".join(["default-src 'none'", *parts, "connect-src 'self'", "base-uri 'none'", "frame-ancestors 'none'"])


def _hash(tag: str) -> str:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", _text(), re.S)
    assert found
    return "sha256-" + base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()


def page() -> HTMLResponse:
    """Return the answer with the page."""
    return HTMLResponse(_text(), headers={"Content-Security-Policy": _policy(), "X-Content-Type-Options": "nosniff"})


@router.post(GRAPHQL_PATH)
async def answer(request: Request, context: Compat) -> Response:
    """Execute one operation. The status is 200 if it began, and 422 if GraphQL itself refuses the request."""
    examiner: Examiner = request.app.state.examiner
    source: str = request.scope["state"]["source"]
    try:
        found = await examiner.examine(source, await _body(request, context))
    except Refusal as refusal:
        entry = {"message": refusal.sentence} | ({"extensions": _extensions(refusal)} if refusal.retry_after_s else {})
        return JSONResponse({"data": None, "errors": [entry]}, refusal.status, refusal.headers())
    content = found["content"]
    for need in found["needs"]:
        field = need["field"]
        try:
            content["data"][field] = await _fulfil(context, source, need)
        except Exception as error:
            return JSONResponse({"data": None, "errors": _entries(error, [field])})
    return JSONResponse(content, found["status"])


async def _fulfil(context: CompatContext, source: str, need: dict[str, str]) -> str:
    """Return the hash of a job that is stored now, or the batch script of a stored one."""
    if "show" in need:
        return await _batch_script(context, need["show"])
    try:
        return await store_anonymous(context, source, need["store"].encode())
    except InputError as error:
        raise FaultyInput(faults_of_lines(error.message)) from None


async def _batch_script(context: CompatContext, definition_hash: str) -> str:
    """Return the batch script of a stored definition, if the service runs for tests. Raises Refusal."""
    services = context.services
    if not services.debug_scripts:
        raise Refusal(403, "this service does not show batch scripts")
    async with services.database.read() as session:
        owned = await session.get(Definition, definition_hash)
        unowned = await session.get(UnownedDefinition, definition_hash)
    sealed = (owned and owned.sealed) or (unowned and unowned.sealed)
    if not sealed:
        raise Refusal(404, "there is no definition under this hash")
    return render(from_canonical(services.vault.unseal(sealed)[SALT_BYTES:]), StoragePaths())


@router.get("/")
@router.get(GRAPHQL_PATH)
async def playground(request: Request) -> Response:
    """Return the page on which people try queries. Queries themselves are never sent by GET."""
    if "query" in request.query_params:
        raise Refusal(405, "send queries in the body of a POST")
    return page()


@router.get("/health")
async def health() -> PlainTextResponse:
    """Answer `ok` while the process runs. `/v1/health` also asks the store."""
    return PlainTextResponse("ok")


async def _body(request: Request, context: CompatContext) -> bytes:
    """Return the body of a request that may be answered. Refuses with 400, 408, 413 and 415."""
    if ADDRESS_HEADER in request.headers:  # a known signer's name would lift the limits for strangers
        raise Refusal(400, "GraphQL requests are not signed", hang_up=True)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refusal(415, "the body must have the type application/json", hang_up=True)
    return await read_body(request, messages.MAX_UPLOAD_BODY_BYTES)


def _entries(cause: Exception, path: list[str]) -> list[dict[str, Any]]:
    """Return the entries of an error of the service, or of the faults of a job."""
    if isinstance(cause, FaultyInput):
        return cause.entries(path)
    refusal = as_refusal(cause)
    return [{"message": refusal.sentence, "path": path, "extensions": _extensions(refusal)}]


def _extensions(refusal: Refusal) -> dict[str, Any]:
    return {"type": "internal"} | ({} if refusal.retry_after_s is None else {"retry_after_s": refusal.retry_after_s})
