"""Ends the supervisor of a cluster that is drained for good, once its last job is settled."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from prefect.context import AsyncClientContext

from deepgrid.provider.session import ProviderSession
from orchestration.claiming_pause import is_claiming, is_for_good
from orchestration.outages import until_it_answers, warn

POLL_S = 5.0
LOGS_WITHIN_S = 600.0  # what is not delivered then stays incomplete

logger = logging.getLogger(__name__)


async def until_drained(session: ProviderSession, is_idle: Callable[[], bool]) -> None:
    """Return when the cluster is drained for good, none of its jobs is open, and this process is idle.

    That is one minute after its last transaction, so that no reorganisation undoes it unnoticed. Outages of Prefect or
    the chain only delay it.
    """
    await until_it_answers()
    async with AsyncClientContext.get_or_create():  # else each poll creates a client, which costs more than the poll
        await _until_drained(session, is_idle)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LOGS_WITHIN_S):
            await session.logs.until_idle()


async def _until_drained(session: ProviderSession, is_idle: Callable[[], bool]) -> None:
    cluster, logged = session.settings.cluster, False
    while True:
        try:
            drains = await is_for_good(cluster)
            if drains and not logged:
                logger.info("%s is drained for good: this supervisor ends when its last job is settled", cluster)
            logged = drains
            if drains and await _nothing_left(session) and is_idle():
                return
        except Exception as error:  # Prefect's client raises many types while its server is down
            warn(logger, f"cannot check whether {cluster} is drained, trying again", error, logging.DEBUG)
        await asyncio.sleep(POLL_S)


async def _nothing_left(session: ProviderSession) -> bool:
    """Whether no claim is open and none can follow. The order of these checks matters."""
    if await is_claiming(session.settings.cluster) or not session.sender.at_rest:
        return False
    return not await session.chain.claimed_jobs(session.address) and session.is_idle
