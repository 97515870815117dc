"""A provider's settings, kept on this machine, so that a supervisor starts while Prefect is away.

They are what the provider's block said last: addresses, prices and paths, no secret. Another Prefect server has
other blocks of the same names, so the file says whose they are.
"""

from __future__ import annotations

import logging
from pathlib import Path

from prefect.settings import PREFECT_API_URL, get_current_settings
from pydantic import BaseModel, ValidationError

from blocks import Provider
from blocks.loading import load_block
from deepgrid.chain.node.durable import write_json
from deepgrid.errors import ServiceError
from deepgrid.provider.session import ProviderSettings

logger = logging.getLogger(__name__)


class Kept(BaseModel):
    """The file: settings, and the API of the Prefect server that they come from."""

    prefect: str
    settings: ProviderSettings


async def provider_settings(cluster: str) -> ProviderSettings:
    """What the provider block `cluster` says; when Prefect does not answer, what it said last.

    Raises ConfigurationError when Prefect has no such block, ServiceError when it is silent and nothing was kept.
    """
    try:
        settings = (await load_block(Provider, cluster)).settings()
    except ServiceError as error:
        kept = _read(kept_file(cluster))
        if kept is None:
            raise
        logger.warning("%s Serving %s with its settings of before.", error.message, cluster)
        return kept
    _keep(kept_file(cluster), settings)
    return settings


def kept_file(cluster: str) -> Path:
    """Where the settings are kept: beside what else this machine knows of its Prefect server."""
    return get_current_settings().home / "deepgrid" / "providers" / f"{cluster}.json"


def _keep(file: Path, settings: ProviderSettings) -> None:
    kept = Kept(prefect=PREFECT_API_URL.value() or "", settings=settings)
    try:
        write_json(file, kept.model_dump(mode="json"), mode=0o600)
    except OSError as error:
        logger.warning("without Prefect this supervisor will not start, as %s cannot be written: %s", file, error)


def _read(file: Path) -> ProviderSettings | None:
    try:
        kept = Kept.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        logger.warning("%s does not hold a provider's settings: %s", file, error)
        return None
    return kept.settings if kept.prefect == (PREFECT_API_URL.value() or "") else None
