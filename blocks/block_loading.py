"""Loads a block, and raises errors that a person can act on."""

from __future__ import annotations

import asyncio
from typing import TypeVar, cast

import httpx
from prefect.blocks.core import Block
from prefect.settings import PREFECT_API_URL

from deepgrid.errors import ConfigurationError, ServiceError

B = TypeVar("B", bound=Block)
TIMEOUT_S = 30.0


async def load_block(kind: type[B], name: str, timeout_s: float = TIMEOUT_S) -> B:
    """Load the block. Raises ConfigurationError if there is none, ServiceError if Prefect does not answer in time."""
    try:
        async with asyncio.timeout(timeout_s):
            return cast(B, await kind.aload(name))
    except ValueError:
        raise ConfigurationError(
            f"Prefect has no block {kind.get_block_type_slug()}/{name}.",
            next_step="Create it in the Prefect UI, after `prefect block register -m blocks`.",
        ) from None
    except httpx.HTTPStatusError as error:
        if (status := error.response.status_code) < 500:
            raise ConfigurationError(
                f"The Prefect server at {PREFECT_API_URL.value()} refuses to hand out blocks (HTTP {status}).",
                next_step="Set the credentials that the server requires, such as PREFECT_API_AUTH_STRING.",
            ) from None
        raise _no_answer() from None
    except (httpx.HTTPError, TimeoutError):
        raise _no_answer() from None


def _no_answer() -> ServiceError:
    return ServiceError(f"The Prefect server at {PREFECT_API_URL.value()} does not answer.")
