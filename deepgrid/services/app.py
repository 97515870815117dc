"""The Job Definition service and the log service as one application that holds no wallet key.

Every refusal is JSON, `{"error": sentence}`. Customers' texts, keys and signatures never get into log lines or
into answers to other parties.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from deepgrid.chain.client import Chain
from deepgrid.errors import GridError, InputError
from deepgrid.services import messages, protocol_version
from deepgrid.services.admission import Admission, Gate, Limits, ScriptChecks
from deepgrid.services.cleanup import Retention, clean_up_for_ever
from deepgrid.services.context import Context, Services
from deepgrid.services.handlers import authentication, definitions, logs, notices
from deepgrid.services.handlers.job_queue import JobQueue
from deepgrid.services.handlers.job_queue import router as queue_router
from deepgrid.services.refusal import Refusal
from deepgrid.services.service_metrics import Measured, ServiceMetrics
from deepgrid.services.signing.request_signing import Domain
from deepgrid.services.storage.database import Database
from deepgrid.services.storage.replays import Fence
from deepgrid.services.storage.vault import Vault

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ServicesSettings:
    """Settings of the services.

    `database_url`: `sqlite:///FILE` (for one process) or `postgresql://...`; it may contain a password.
    `secret_file`: the key for encryption at rest; created (mode 0600) if it is missing.
    `sockets`: folder of the Unix sockets for the proxy, `socket_group` the group that may open them.
    `port`, `grpc_port`: ports of the loopback interface if there is no such folder; without `grpc_port` no gRPC.
    `debug_scripts`: shows the batch script of any definition, with its secrets, to anybody; for tests only.
    `migrate`: changes the tables of an earlier release first, instead of refusing them.
    `metrics_port`: of the page for Prometheus, on the loopback interface; 0 for none.
    """

    database_url: str = field(repr=False)
    secret_file: Path
    sockets: Path | None = None
    socket_group: str | None = None
    port: int = 3000
    grpc_port: int | None = None
    book: Path | None = None
    max_log_bytes: int = 64 * 1024 * 1024
    retention: Retention = field(default_factory=Retention)
    clean_up_every_s: float = 60.0
    debug_scripts: bool = False
    limits: Limits = field(default_factory=Limits)
    migrate: bool = False
    metrics_port: int = 0


@contextlib.asynccontextmanager
async def open_services(
    settings: ServicesSettings, domain: Domain, chain: Chain, clock: Callable[[], float] = time.time
) -> AsyncIterator[FastAPI]:
    """The application for the grid of `domain`, with its store open and clean-up running.

    Raises ConfigurationError when the database or the secret file cannot be used.
    """
    vault, limits = Vault.open(settings.secret_file), settings.limits
    database, metrics = Database(settings.database_url), ServiceMetrics()
    context = Context(
        domain, chain, database, vault, lambda: int(clock()), settings.max_log_bytes,
        Admission(limits),
        ScriptChecks(
            limits.check_slots, limits.checks_waiting_per_uploader, limits.check_wait_s, checked=metrics.checked
        ),
        debug_scripts=settings.debug_scripts, metrics=metrics,
    )  # fmt: skip
    try:
        await database.prepare(migrate=settings.migrate)
        context.fence = await Fence.read(database)
        cleaning = asyncio.create_task(clean_up_for_ever(context, settings.retention, settings.clean_up_every_s))
        app = create_app(context)
        try:
            yield app
        finally:
            await context.hub.close()
            await context.nonces.close()
            cleaning.cancel()
            await asyncio.gather(cleaning, return_exceptions=True)
    finally:
        await database.close()


def create_app(context: Context) -> FastAPI:
    """The application on an open store."""
    app = FastAPI(title="deepgrid services", openapi_url=None)
    app.state.context = context
    app.add_middleware(Gate, admission=context.admission)
    app.add_middleware(Measured, metrics=context.metrics)
    for router in (definitions.router, logs.router, notices.router, authentication.router):
        app.include_router(router)
    app.state.job_queue = JobQueue(context.chain, context.clock)
    app.include_router(queue_router)
    app.add_api_route("/v1/health", health)
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    return app


async def health(context: Services, response: Response) -> messages.Health:
    """Check that the store answers, and name the grid of this service and its versions of the protocol."""
    async with context.database.read() as session:
        await session.execute(text("select 1"))
    response.headers[protocol_version.HEADER] = protocol_version.served_as_header()
    domain = context.domain
    return messages.Health(
        status="ok", chain_id=domain.chain_id, meta_scheduler=domain.verifying_contract, time=context.clock()
    )


def _answer(status: int, sentence: str, **further: int) -> JSONResponse:
    return JSONResponse({"error": sentence, **further}, status)


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refusal)
    answer = _answer(error.status, error.sentence, **error.further)
    answer.headers.update(error.headers())
    return answer


async def _malformed(_request: Request, error: Exception) -> JSONResponse:
    """Name the wrong fields, without their values."""
    assert isinstance(error, (RequestValidationError, ValidationError))
    faults = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
    return _answer(422, "; ".join(faults)[:1000])


async def _of_the_grid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, GridError)
    if isinstance(error, InputError):
        return _answer(422, error.message)
    if error.transient:
        return _answer(503, error.message)
    logger.error("a request failed: %s", error.message)
    return _answer(500, "the service is not configured correctly")


async def _http(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return _answer(error.status_code, str(error.detail))


async def _store_failed(_request: Request, error: Exception) -> JSONResponse:
    logger.error("the database failed: %s", type(error).__name__)
    return _answer(503, "the service's store does not answer at the moment")


async def _unforeseen(_request: Request, error: Exception) -> JSONResponse:
    return _answer(500, f"the service failed ({type(error).__name__})")


HANDLERS: dict[type[Exception], Callable[[Request, Exception], Awaitable[JSONResponse]]] = {
    Refusal: _refused,
    RequestValidationError: _malformed,
    ValidationError: _malformed,
    GridError: _of_the_grid,
    HTTPException: _http,
    SQLAlchemyError: _store_failed,
    Exception: _unforeseen,
}
