"""Cache of a provider's settings on this machine, so that a supervisor can start while Prefect is down.

It holds the last version of the provider's block: addresses, prices and paths, no secret. Another Prefect server may
have another block of the same name, so the file names its server.
"""

from __future__ import annotations

import logging
from pathlib import Path

from prefect.settings import PREFECT_API_URL, get_current_settings
from pydantic import BaseModel, ValidationError

from blocks import Provider
from blocks.block_loading import load_block
from deepgrid.errors import ServiceError
from deepgrid.files.private_files import write_json
from deepgrid.provider.session import ProviderSettings

logger = logging.getLogger(__name__)


class CachedSettings(BaseModel):
    """The cache file: settings, and the URL of the Prefect API that they come from."""

    prefect: str
    settings: ProviderSettings


async def provider_settings(cluster: str) -> ProviderSettings:
    """Return the settings of the provider block `cluster`, from the cache when Prefect does not answer.

    Raises ConfigurationError when Prefect has no such block, ServiceError without an answer and without a cache.
    """
    try:
        return await fresh_settings(cluster)
    except ServiceError as error:
        cached = _read(cache_file(cluster))
        if cached is None:
            raise
        logger.warning("Using cached settings for cluster %s; Prefect is not reachable: %s", cluster, error.message)
        return cached


async def fresh_settings(cluster: str) -> ProviderSettings:
    """Return the settings of the provider block, and keep them in the cache.

    Raises ConfigurationError when Prefect has no such block, ServiceError when it does not answer.
    """
    settings = (await load_block(Provider, cluster)).settings()
    fresh = CachedSettings(prefect=PREFECT_API_URL.value() or "", settings=settings)
    try:
        write_json(cache_file(cluster), fresh.model_dump(mode="json"), mode=0o600)
    except OSError as error:
        logger.warning("%s cannot be written, so the next start needs Prefect: %s", cache_file(cluster), error)
    return settings


def cache_file(cluster: str) -> Path:
    """Return the path of the cache file, below Prefect's home folder."""
    return get_current_settings().home / "deepgrid" / "providers" / f"{cluster}.json"


def _read(file: Path) -> ProviderSettings | None:
    try:
        cached = CachedSettings.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        logger.warning("%s does not hold a provider's settings, ignoring it: %s", file, error)
        return None
    return cached.settings if cached.prefect == (PREFECT_API_URL.value() or "") else None
