"""The end of a supervisor whose cluster is drained for good: when nothing of it is left to do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from prefect.context import AsyncClientContext

from deepgrid.provider.session import ProviderSession
from runtime.claiming_pause import is_claiming, is_for_good
from runtime.outages import until_it_answers, warn

LOOK_S = 5.0

logger = logging.getLogger(__name__)


async def until_drained(session: ProviderSession, is_idle: Callable[[], bool]) -> None:
    """Return when the cluster is drained for good, no job of it is open and this process is idle.

    That is a minute after its last transaction, when no reorganisation can undo it unseen. Prefect or chain may be
    away meanwhile.
    """
    await until_it_answers()
    async with AsyncClientContext.get_or_create():  # else each look makes a client, which costs more than the look
        await _until_drained(session, is_idle)


async def _until_drained(session: ProviderSession, is_idle: Callable[[], bool]) -> None:
    cluster, said = session.settings.cluster, False
    while True:
        try:
            drains = await is_for_good(cluster)
            if drains and not said:
                logger.info("%s is drained for good: this supervisor ends with its last job", cluster)
            said = drains
            if drains and await _nothing_left(session) and is_idle():
                return
        except Exception as error:  # whatever Prefect's client raises while its server is away
            warn(logger, f"whether {cluster} is drained cannot be told", error, logging.DEBUG)
        await asyncio.sleep(LOOK_S)


async def _nothing_left(session: ProviderSession) -> bool:
    """No claim is open, and none can come: what began before the drain is over. Asked in this order."""
    if await is_claiming(session.settings.cluster) or not session.sender.at_rest:
        return False
    return not await session.chain.claimed_jobs(session.address) and session.is_idle
