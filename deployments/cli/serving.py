"""Shared code of the verbs that serve: logging to standard error, a check for a Prefect server, an end by signal."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from prefect.settings import PREFECT_API_URL

from blocks import Provider
from blocks.block_loading import load_block
from deepgrid.cli.border import complain
from deepgrid.cli.logs import start_logging
from deepgrid.errors import ConfigurationError, GridError
from deepgrid.provider.session import ProviderSettings
from orchestration.service import leave, serve_until_signalled
from orchestration.tracing import start_tracing

logger = logging.getLogger(__name__)


def serve(role: Callable[[str], Awaitable[None]], name: str) -> None:
    """Run a role with the block `name` until it ends or a SIGTERM or SIGINT arrives, then end this process.

    An error of the role ends it with a complaint. Raises ConfigurationError without a Prefect server.
    """
    require_prefect()
    start_logging()
    start_tracing(f"deepgrid-{name}")
    try:
        serve_until_signalled(lambda: role(name))
    except Exception as error:
        if not isinstance(error, GridError):
            logger.error("this process must end: unexpected error", exc_info=error)
        leave(complain(error))
    leave()


def require_prefect() -> None:
    """Raise ConfigurationError when no server is set. Prefect would otherwise start an empty one."""
    if not PREFECT_API_URL.value():
        raise ConfigurationError(
            "No Prefect server is configured.", next_step="Set PREFECT_API_URL, such as http://127.0.0.1:4200/api."
        )


async def provider_settings(cluster: str) -> ProviderSettings:
    """The settings of the provider block `cluster`.

    Raises ConfigurationError without a Prefect server or such a block, ServiceError when Prefect does not answer.
    """
    require_prefect()
    return (await load_block(Provider, cluster)).settings()
