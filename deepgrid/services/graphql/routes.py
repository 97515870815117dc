"""`/graphql`, its playground, and the `/health` that existing clients ask."""

from __future__ import annotations

import logging
from typing import Any

from ariadne import graphql
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from graphql import GraphQLError
from sqlalchemy.exc import SQLAlchemyError

from deepgrid.errors import ConfigurationError, GridError
from deepgrid.plain_text import plain
from deepgrid.services import messages
from deepgrid.services.context import Context, Services
from deepgrid.services.graphql.cross_origin import PATH
from deepgrid.services.graphql.documents import read_body, read_document
from deepgrid.services.graphql.fault_entries import FaultyInput
from deepgrid.services.graphql.operations import SCHEMA, Asked
from deepgrid.services.graphql.playground import page
from deepgrid.services.handlers.authentication import read_body as read_bytes
from deepgrid.services.refusal import Refusal
from deepgrid.services.signing.request_signing import ADDRESS_HEADER

LONGEST_MESSAGE = 500  # graphql-core's messages quote values

router = APIRouter()
logger = logging.getLogger(__name__)
nowhere = logging.Logger("graphql")  # ariadne logs each error with its values and traceback
nowhere.disabled = True


@router.post(PATH)
async def answer(request: Request, context: Services) -> Response:
    """Execute one operation. The status is 200 if it began, and 422 if GraphQL itself refuses the request."""
    try:
        data = read_body(await _body(request, context))
    except Refusal as refusal:
        return JSONResponse({"errors": [{"message": refusal.sentence}]}, refusal.status, refusal.headers())
    except GraphQLError as error:
        return JSONResponse({"errors": [{"message": error.message}]}, 422)
    asked = Asked(context, request.scope["state"]["source"])
    _done, result = await graphql(
        SCHEMA, data, context_value=asked, query_parser=read_document, logger=nowhere, error_formatter=_entry
    )
    errors = [one for entry in result.get("errors", ()) for one in entry.pop("faults", [entry])]
    if not errors:
        return JSONResponse(result)
    began = any("path" in error for error in errors)  # errors of GraphQL itself have no path
    return JSONResponse({**result, "errors": errors}, 200 if began else 422)


@router.get("/")
@router.get(PATH)
async def playground(request: Request) -> Response:
    """The page on which people try queries. Queries themselves are never sent by GET."""
    if "query" in request.query_params:
        raise Refusal(405, "send queries in the body of a POST")
    return page()


@router.get("/health")
async def health() -> PlainTextResponse:
    """Answers `ok` while the process runs. `/v1/health` also asks the store."""
    return PlainTextResponse("ok")


async def _body(request: Request, context: Context) -> bytes:
    """The body of a request that may be answered. Refuses with 400, 408, 413 and 415."""
    if ADDRESS_HEADER in request.headers:  # a known signer's name would lift the limits for strangers
        raise Refusal(400, "GraphQL requests are not signed", hang_up=True)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refusal(415, "the body must have the type application/json", hang_up=True)
    return await read_bytes(request, messages.MAX_UPLOAD_BODY_BYTES, context.admission.limits.body_within_s)


def _entry(error: GraphQLError, _debug: bool = False) -> dict[str, Any]:
    """The entry of an error, or a list of entries under `faults`."""
    cause, path = error.original_error, error.path or []
    if isinstance(cause, FaultyInput):
        return {"faults": [fault.entry(path) for fault in cause.faults]}
    if cause is None or isinstance(cause, GraphQLError):
        where = {"path": path} if path else {}
        return {"message": _short(error.message), **where}
    return {"message": _sentence(cause), "path": path, "extensions": {"type": "internal"} | _further(cause)}


def _sentence(cause: Exception) -> str:
    """What the client reads of an error that is not a fault of its job. Errors of the service are logged."""
    if isinstance(cause, Refusal):
        return cause.sentence
    if isinstance(cause, SQLAlchemyError):
        logger.error("the database failed: %s", type(cause).__name__)
        return "the service's store does not answer at the moment"
    if isinstance(cause, ConfigurationError):
        logger.error("a request failed: %s", cause.message)
        return "the service is not configured correctly"
    if isinstance(cause, GridError):
        return cause.message
    logger.error("a GraphQL request failed: %s", type(cause).__name__)
    return f"the service failed ({type(cause).__name__})"


def _further(cause: Exception) -> dict[str, int]:
    wait_s = cause.retry_after_s if isinstance(cause, Refusal) else None
    return {} if wait_s is None else {"retry_after_s": wait_s}


def _short(message: str) -> str:
    """A message of GraphQL itself, as one sentence."""
    text = plain(message)
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + "..."
