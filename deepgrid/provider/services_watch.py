"""Watches whether the services are those of the grid, and speak this release's protocol. If not, no job is claimed."""

from __future__ import annotations

import asyncio
import logging

from deepgrid.errors import ConfigurationError, GridError
from deepgrid.provider.session import ProviderSession

CHECK_EVERY_S = 60.0

logger = logging.getLogger(__name__)


async def watch_services(session: ProviderSession, check_every_s: float = CHECK_EVERY_S) -> None:
    """Set `session.services_fault` from time to time, without end. Services that are down change nothing."""
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
