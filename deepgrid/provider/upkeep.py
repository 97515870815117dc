"""Background loops of a supervisor: logs of the previous process, and the state of the services."""

from __future__ import annotations

import asyncio
import logging

from deepgrid.condition_log import ConditionLog
from deepgrid.errors import ConfigurationError, GridError, NotFound
from deepgrid.lifecycle.job import JobKey
from deepgrid.provider.session import ProviderSession

CHECK_AGAIN_S = 30.0
CHECK_EVERY_S = 60.0

logger = logging.getLogger(__name__)


async def resume_logs(session: ProviderSession, check_again_s: float = CHECK_AGAIN_S) -> None:
    """Deliver the rest of the logs of jobs that are over. Logs of jobs that are not over belong to their carriers.

    Returns when no log of the previous process is left.
    """
    silence = ConditionLog(logger, "cannot resume the logs of jobs that are over")
    while keys := session.logs.undelivered:
        try:
            for key in keys:
                await _resume(session, key)
            silence.end()
        except GridError as error:
            silence.note(error.message)
        if session.logs.undelivered:
            await asyncio.sleep(check_again_s)


async def _resume(session: ProviderSession, key: JobKey) -> None:
    try:
        job = await session.chain.job(key.job_id)
    except NotFound:
        session.logs.forget(key)
        return
    if session.key_of(job) != key or job.provider != session.address:
        session.logs.forget(key)  # given back: the log of another claim counts
    elif not job.status.hot:
        session.logs.end(key)


async def watch_services(session: ProviderSession, check_every_s: float = CHECK_EVERY_S) -> None:
    """Set `session.services_fault` forever: no job is claimed while it names a fault.

    Services of another grid, or with another version of the protocol, are a fault. Services that are down change
    nothing.
    """
    while True:
        try:
            await session.services.health()
            session.services_fault = ""
        except ConfigurationError as error:
            if session.services_fault != (fault := error.message.rstrip(".")):
                logger.warning("no job is claimed: %s", error)
            session.services_fault = fault
        except GridError:
            pass  # a process that needs the services says so
        await asyncio.sleep(check_every_s)
