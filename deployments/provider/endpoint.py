"""A supervisor's local HTTP endpoint: `/health` for people and process managers, `/metrics` for Prometheus.

It looks at everything every PULSE_S, whether anybody asks or not, so an answer costs nobody anything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from prefect.client.orchestration import get_client
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from deepgrid.errors import GridError, ServiceError
from deepgrid.observability.liveness import Need
from deepgrid.provider.session import ProviderSession

PULSE_S = 30.0
PREFECT_ANSWERS_WITHIN_S = 10.0

logger = logging.getLogger(__name__)


@asynccontextmanager
async def health_and_metrics(session: ProviderSession) -> AsyncIterator[None]:
    """Serve them while it lasts, where the settings say; port 0 is for nowhere, a taken port costs a warning."""
    host, port = session.settings.metrics_host, session.settings.metrics_port
    if not port:
        yield
        return
    runner = web.AppRunner(application(session), access_log=None)
    await runner.setup()
    pulse = asyncio.create_task(_feel(session), name="pulse")
    try:
        try:
            await web.TCPSite(runner, host, port).start()
            logger.info("health and metrics: http://%s:%d/health and /metrics", host, port)
        except OSError as error:
            logger.warning("no health and metrics at %s:%d: %s", host, port, error.strerror or error)
        yield
    finally:
        pulse.cancel()
        await asyncio.gather(pulse, return_exceptions=True)
        await runner.cleanup()


def application(session: ProviderSession) -> web.Application:
    """The endpoint's pages, which ask nobody anything."""

    async def health(_: web.Request) -> web.Response:
        complaints = session.metrics.vitals.complaints()
        return web.json_response(report(session, complaints), status=503 if complaints else 200)

    async def metrics(_: web.Request) -> web.Response:
        text = generate_latest(session.metrics.registry)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_LATEST})

    pages = web.Application()
    pages.add_routes([web.get("/health", health), web.get("/healthz", health), web.get("/metrics", metrics)])
    return pages


def report(session: ProviderSession, complaints: list[str]) -> dict[str, object]:
    """What `/health` says: `last_answers` are unix seconds, 0 for never."""
    vitals = session.metrics.vitals
    return {
        "cluster": session.settings.cluster,
        "provider": session.address,
        "healthy": not complaints,
        "reasons": complaints,
        "leader_epoch": session.metrics.epoch(),
        "prefect": vitals.well(Need.PREFECT),
        "carriers": len(session.metrics.carried()),
        "last_answers": {need.name.lower(): round(vitals.last(need)) for need in Need},
    }


async def _feel(session: ProviderSession) -> None:
    """Look at what the supervisor needs, for ever, even while there is no job."""
    while True:
        for outcome in await asyncio.gather(
            _feel_slurm(session), _count_gas(session), _count_spool(session), _feel_prefect(session),
            return_exceptions=True,
        ):  # fmt: skip
            if isinstance(outcome, GridError):  # what failed is counted where it did
                logger.debug("not seen: %s", outcome)
            elif isinstance(outcome, Exception):
                logger.error("a look failed in a way that nobody thought of", exc_info=outcome)
        await asyncio.sleep(PULSE_S)


async def _feel_slurm(session: ProviderSession) -> None:
    try:
        await session.cluster.health()
        session.metrics.vitals.note(Need.SLURM)
    except GridError as error:
        session.metrics.vitals.note(Need.SLURM, error)


async def _count_gas(session: ProviderSession) -> None:
    session.metrics.set_gas_balance(await session.chain.gas_money(session.address))


async def _count_spool(session: ProviderSession) -> None:
    session.metrics.spooled(await session.cluster.spooled())


async def _feel_prefect(session: ProviderSession) -> None:
    fault: Exception | None
    try:
        async with asyncio.timeout(PREFECT_ANSWERS_WITHIN_S), get_client() as client:
            fault = await client.api_healthcheck()
    except TimeoutError as error:
        fault = error
    session.metrics.vitals.note(Need.PREFECT, ServiceError("Prefect's API does not answer.") if fault else None)
