"""A supervisor's local HTTP endpoint: `/health` for people and process managers, `/metrics` for Prometheus.

Background checks run at a fixed interval, so a request to the endpoint causes no other request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web
from prefect.client.orchestration import get_client

from deepgrid.chain.chain_findings import PROVIDER_GAS, judge_gas
from deepgrid.errors import GridError, ServiceError
from deepgrid.observability.metrics import Need
from deepgrid.observability.metrics_page import metrics_page
from deepgrid.provider.session import ProviderSession
from orchestration.grid_events import DEGRADED, LOW_ON_GAS, Conditions

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EndpointSettings:
    """Intervals and timeouts of the background checks."""

    check_every_s: float = 30.0
    prefect_timeout_s: float = 10.0


@asynccontextmanager
async def health_and_metrics(
    session: ProviderSession, settings: EndpointSettings = EndpointSettings()
) -> AsyncIterator[None]:
    """Serve the endpoint while the context lasts. Port 0 means no endpoint; a port in use causes only a warning."""
    host, port = session.settings.metrics_host, session.settings.metrics_port
    if not port:
        yield
        return
    async with metrics_page(session.metrics.registry, port, host, health_routes(session)) as served:
        if served:
            logger.info("health and metrics: http://%s:%d/health and /metrics", host, port)
        checks = asyncio.create_task(_check_regularly(session, settings), name="health-checks")
        try:
            yield
        finally:
            checks.cancel()
            await asyncio.gather(checks, return_exceptions=True)


def health_routes(session: ProviderSession) -> list[web.RouteDef]:
    """Return the pages other than the metrics. They answer from memory."""

    async def health(_: web.Request) -> web.Response:
        complaints = session.metrics.liveness.complaints()
        return web.json_response(report(session, complaints), status=503 if complaints else 200)

    return [web.get("/health", health), web.get("/healthz", health)]


def report(session: ProviderSession, complaints: list[str]) -> dict[str, object]:
    """Return the answer of `/health`. `last_answers` are unix seconds, 0 for never."""
    liveness = session.metrics.liveness
    return {
        "cluster": session.settings.cluster,
        "provider": session.address,
        "healthy": not complaints,
        "reasons": complaints,
        "leader_epoch": session.metrics.epoch(),
        "prefect": liveness.well(Need.PREFECT),
        "carriers": len(session.metrics.carried()),
        "last_answers": {need.name.lower(): round(liveness.last(need)) for need in Need},
    }


async def _check_regularly(session: ProviderSession, settings: EndpointSettings) -> None:
    """Check everything that the supervisor needs, forever, even while there is no job."""
    conditions = Conditions("provider", session.settings.cluster)
    while True:
        prefect = _check_prefect(session, settings.prefect_timeout_s)
        of_chain = _count_gas(session, conditions), _read_offer(session)
        checks = (_check_slurm(session), _count_spool(session), *of_chain, prefect)
        for outcome in await asyncio.gather(*checks, return_exceptions=True):
            if isinstance(outcome, GridError):  # the failing request has counted it
                logger.debug("a health check failed: %s", outcome)
            elif isinstance(outcome, Exception):
                logger.error("a health check failed: unexpected error", exc_info=outcome)
        conditions.tell(DEGRADED, _degradation(session))
        await asyncio.sleep(settings.check_every_s)


def _degradation(session: ProviderSession) -> str:
    """Return what this supervisor lacks; empty on a standby, because the leader reports it.

    Without the login node no supervisor leads, because the leader's lock is there.
    """
    liveness = session.metrics.liveness
    tells = session.leader.leads or not liveness.well(Need.LOGIN)
    return " ".join(liveness.complaints()) if tells else ""


async def _check_slurm(session: ProviderSession) -> None:
    try:
        session.metrics.saw_nodes(*await session.cluster.health())
        session.metrics.liveness.note(Need.SLURM)
    except GridError as error:
        session.metrics.liveness.note(Need.SLURM, error)


async def _count_gas(session: ProviderSession, conditions: Conditions) -> None:
    money, price = await asyncio.gather(session.chain.gas_money(session.address), session.chain.gas_price())
    session.metrics.set_gas_balance(money)
    if session.leader.leads:  # a standby would report the same
        conditions.tell(LOW_ON_GAS, judge_gas(PROVIDER_GAS, session.address, money, price).complaint)


async def _read_offer(session: ProviderSession) -> None:
    session.metrics.offers([await session.chain.provider(session.address)])


async def _count_spool(session: ProviderSession) -> None:
    session.metrics.spooled(await session.cluster.spooled())


async def _check_prefect(session: ProviderSession, timeout_s: float) -> None:
    fault: Exception | None
    try:
        async with asyncio.timeout(timeout_s), get_client() as client:
            fault = await client.api_healthcheck()
    except Exception as error:  # Prefect's client has more than one kind
        fault = error
    session.metrics.liveness.note(Need.PREFECT, ServiceError("Prefect's API does not answer.") if fault else None)
