"""The Job Definition service and the log service as one application that holds no wallet key.

Every refusal is JSON, `{"error": sentence}`. Customers' texts, keys and signatures never get into log lines or
into answers to other parties.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
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
from deepgrid.errors import GridError
from deepgrid.services import messages, protocol_version
from deepgrid.services.admission import Admission, Gate, Limits, ScriptChecks
from deepgrid.services.admission.webhook_targets import Targets
from deepgrid.services.cleanup import Retention, clean_up_for_ever
from deepgrid.services.context import Context, Services
from deepgrid.services.core import as_refusal
from deepgrid.services.files.addresses import Addresses
from deepgrid.services.files.bundles import Bundles
from deepgrid.services.files.parts import Parts, open_store
from deepgrid.services.files.policy import PolicyFile
from deepgrid.services.handlers import (
    authentication,
    definitions,
    files,
    job_receipts,
    kept_jobs,
    logs,
    notices,
    running_uses,
    subscriptions,
    transfers,
    tunnel_routes,
)
from deepgrid.services.handlers.job_queue import JobQueue
from deepgrid.services.handlers.job_queue import router as queue_router
from deepgrid.services.notify.notifier import NotifierSettings, notify_for_ever
from deepgrid.services.refusal import Refusal
from deepgrid.services.service_metrics import Measured, ServiceMetrics
from deepgrid.services.signing.request_signing import Domain
from deepgrid.services.storage.database import Database
from deepgrid.services.storage.grid_of_jobs import note_grid
from deepgrid.services.storage.replays import Fence
from deepgrid.services.storage.vault import Vault
from deepgrid.services.tunnels.revoked_keys import end_revoked_for_ever

ERRORS = (Refusal, RequestValidationError, ValidationError, GridError, HTTPException, SQLAlchemyError, Exception)


@dataclass(frozen=True)
class ServicesSettings:
    """Settings of the services."""

    database_url: str = field(repr=False)  # sqlite:///FILE (for one process) or postgresql://...; may hold a password
    secret_file: Path  # the key for encryption at rest; created (mode 0600) if it is missing
    sockets: Path | None = None  # folder of the Unix sockets for the proxy
    socket_group: str | None = None  # the group that may open them
    port: int = 3000  # of the loopback interface, if there is no such folder
    grpc_port: int | None = None  # the same; None for no gRPC
    book: Path | None = None
    max_log_bytes: int = 64 * 1024 * 1024
    files: str = ""  # folder or URL of a bucket for customers' files; empty for none
    files_terms: Path | None = None  # the operator's quotas and retention of files, in JSON
    retention: Retention = field(default_factory=Retention)
    clean_up_every_s: float = 60.0
    debug_scripts: bool = False  # shows the batch script of any definition, with its secrets, to anybody; for tests
    limits: Limits = field(default_factory=Limits)
    notifier: NotifierSettings = field(default_factory=NotifierSettings)
    migrate: bool = False  # changes the tables of an earlier release first, instead of refusing them
    metrics_port: int = 0  # of the page for Prometheus, on the loopback interface; 0 for none


@contextlib.asynccontextmanager
async def open_services(
    settings: ServicesSettings, domain: Domain, chain: Chain, clock: Callable[[], float] = time.time
) -> AsyncIterator[FastAPI]:
    """Yield the application for the grid of `domain`, with its store open and clean-up running.

    Raises ConfigurationError when the database or the secret file cannot be used, or the database is another grid's.
    """
    vault, limits = Vault.open(settings.secret_file), settings.limits
    database, metrics = Database(settings.database_url), ServiceMetrics()
    queue = (limits.check_slots, limits.checks_waiting_per_uploader, limits.check_wait_s)
    checks = ScriptChecks(*queue, checked=metrics.checked)
    context = Context(
        domain, chain, database, vault, lambda: int(clock()), settings.max_log_bytes, Admission(limits), checks,
        debug_scripts=settings.debug_scripts, files=_open_files(settings, database, vault, clock), metrics=metrics,
        targets=Targets(private=settings.notifier.private),
    )  # fmt: skip
    try:
        await database.prepare(migrate=settings.migrate)
        await note_grid(database, domain, chain.job_count)
        context.fence = await Fence.read(database)
        cleaning = asyncio.create_task(clean_up_for_ever(context, settings.retention, settings.clean_up_every_s))
        notifying = asyncio.create_task(notify_for_ever(context, context.targets, settings.notifier.every_s))
        revoking = asyncio.create_task(end_revoked_for_ever(context.switchboard, database))
        app = create_app(context)
        try:
            yield app
        finally:
            await context.log_tails.close()
            await context.switchboard.close()
            await context.nonces.close()
            tasks = (cleaning, notifying, revoking)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await context.targets.close()
    finally:
        await database.aclose()


def _open_files(
    settings: ServicesSettings, database: Database, vault: Vault, clock: Callable[[], float]
) -> Bundles | None:
    """Return the bundles of customers; None if no place for them is set. Raises ConfigurationError."""
    if not settings.files:
        return None
    parts, addresses = Parts(open_store(settings.files), vault.derive("files")), Addresses(vault.derive("addresses"))
    return Bundles(database, parts, addresses, PolicyFile(settings.files_terms), lambda: int(clock()))


def create_app(context: Context) -> FastAPI:
    """Return the application on an open store."""
    app = FastAPI(title="deepgrid services", openapi_url=None)
    app.state.context = context
    addresses = context.files.addresses if context.files else None
    app.add_middleware(Gate, admission=context.admission, addresses=addresses, tunnels=context.switchboard)
    app.add_middleware(Measured, metrics=context.metrics)
    parts = (definitions, kept_jobs, logs, notices, job_receipts, running_uses, authentication, files, transfers)
    for router in (one.router for one in (*parts, subscriptions, tunnel_routes)):
        app.include_router(router)
    app.state.job_queue = JobQueue(context.chain, context.clock)
    app.include_router(queue_router)
    app.add_api_route("/v1/health", health)
    add_error_handlers(app)
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


def add_error_handlers(app: FastAPI) -> None:
    """Let the application answer every error with a refusal."""
    for kind in ERRORS:
        app.add_exception_handler(kind, _refuse)


async def _refuse(_request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, RequestValidationError | ValidationError):  # the wrong fields, without their values
        faults = [f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
        refusal = Refusal(422, "; ".join(faults)[:1000])
    elif isinstance(error, HTTPException):
        refusal = Refusal(error.status_code, str(error.detail))
    else:
        refusal = as_refusal(error)
    return JSONResponse({"error": refusal.sentence, **refusal.further}, refusal.status, refusal.headers())
