"""Loads blocks, and turns faults of Prefect's API into errors that a person can act on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar, cast

import httpx
from prefect.blocks.core import Block
from prefect.settings import PREFECT_API_URL
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from deepgrid.errors import ConfigurationError, ServiceError

B = TypeVar("B", bound=Block)
TIMEOUT_S = 30.0
PREFECTS_OWN = "block_type_slug"  # in a block that was saved as part of another one

logger = logging.getLogger(__name__)


async def load_block(kind: type[B], name: str, timeout_s: float = TIMEOUT_S) -> B:
    """Load the block. Warns of settings of a later release.

    Raises ConfigurationError if there is none or if it does not fit this release, ServiceError if Prefect does not
    answer in time.
    """
    slug = f"{kind.get_block_type_slug()}/{name}"
    try:
        with prefect_faults("hand out blocks"):
            async with asyncio.timeout(timeout_s):
                block = cast(B, await kind.aload(name))
    except RuntimeError as error:  # Prefect's wrapper around the fault
        raise _misfit(slug, error.__cause__) from None
    except ValueError:
        raise ConfigurationError(
            f"Prefect has no block {slug}.",
            next_step="`dps provider init` makes a provider's. Make others in Prefect's UI, after"
            " `prefect block register -m blocks`.",
        ) from None
    if unknown := _unknown(block):
        logger.warning("the block %s has settings that this release does not know: %s", slug, ", ".join(unknown))
    return block


def _unknown(block: Block) -> list[str]:
    """Return names of settings in the block and in its referenced blocks that this release does not know."""
    inner = [value for name in type(block).model_fields if isinstance(value := getattr(block, name), Block)]
    own = set(block.model_extra or ()) - {PREFECTS_OWN}
    return sorted({*own, *(name for one in inner for name in _unknown(one))})


def _misfit(slug: str, cause: BaseException | None) -> ConfigurationError:
    return ConfigurationError(
        f"The block {slug} does not fit this release: {faults_of(cause)}.",
        next_step="Run `dps provider init` again, or run `prefect block register -m blocks` and correct it in the UI.",
    )


def faults_of(error: BaseException | None) -> str:
    """Return each wrong field of a block, with what is wrong, such as `port: input should be a valid integer`."""
    faults = error.errors(include_input=False, include_url=False) if isinstance(error, ValidationError) else []
    return "; ".join(map(_words_of, faults)) or "it is wrong"


def _words_of(fault: ErrorDetails) -> str:
    words = fault["msg"].removeprefix("Value error, ").rstrip(".")
    where = ".".join(map(str, fault["loc"]))
    return f"{where}: {words[0].lower()}{words[1:]}" if where else words


@contextmanager
def prefect_faults(request: str) -> Iterator[None]:
    """Raise ConfigurationError if the API refuses the request, ServiceError if it does not answer.

    `request` completes the sentence "the server refuses to ...".
    """
    try:
        yield
    except httpx.HTTPStatusError as error:
        if (status := error.response.status_code) < 500:
            raise ConfigurationError(
                f"The Prefect server at {PREFECT_API_URL.value()} refuses to {request} (HTTP {status}).",
                next_step="Set the credentials that the server requires, such as PREFECT_API_AUTH_STRING.",
            ) from None
        raise _no_answer() from None
    except (httpx.HTTPError, TimeoutError):
        raise _no_answer() from None


def _no_answer() -> ServiceError:
    return ServiceError(f"The Prefect server at {PREFECT_API_URL.value()} does not answer.")
