"""Finds the logs that a previous process of the supervisor did not deliver to their end."""

from __future__ import annotations

import asyncio
import logging

from deepgrid.errors import GridError, NotFound
from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.session import ProviderSession

CHECK_AGAIN_S = 30.0

logger = logging.getLogger(__name__)


async def resume_logs(session: ProviderSession, check_again_s: float = CHECK_AGAIN_S) -> None:
    """Deliver the rest of the logs of jobs that are over. Logs of jobs that are not over belong to their carriers.

    Returns when no log of the previous process is left.
    """
    while keys := session.logs.undelivered:
        try:
            for key in keys:
                await _resume(session, key)
        except GridError as error:
            logger.warning("cannot resume the logs of jobs that are over, trying again: %s", error.message)
        if session.logs.undelivered:
            await asyncio.sleep(check_again_s)


async def _resume(session: ProviderSession, key: JobKey) -> None:
    try:
        job = await session.chain.job(key.job_id)
    except NotFound:
        session.logs.forget(key)
        return
    if session.key_of(job) != key or job.provider != session.address:
        session.logs.forget(key)  # given back: the log of another claim is the one that counts
    elif not job.status.hot:
        session.logs.end(key)
