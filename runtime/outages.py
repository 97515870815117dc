"""Prefect's API when it does not answer: how to notice it soon, wait until it is back, and say so.

Who must go on whatever Prefect's client raises catches every Exception and says it with `warn`, so that a mistake of
our own is not taken for an outage.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from prefect.client.orchestration import PrefectClient, get_client
from prefect.exceptions import PrefectException
from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from deepgrid.errors import GridError

Log = logging.Logger | logging.LoggerAdapter[logging.Logger]

ANSWERS_WITHIN_S = 10.0
LOOK_S = 2.0


@asynccontextmanager
async def asking() -> AsyncIterator[PrefectClient]:
    """A client, and the same for all that is called meanwhile, each of whose requests is answered soon or fails.

    Prefect's usual one tries again for a minute, or for seven when the server takes requests and says nothing.
    """
    impatient = {PREFECT_API_REQUEST_TIMEOUT: ANSWERS_WITHIN_S, PREFECT_CLIENT_MAX_RETRIES: 0}
    with temporary_settings(impatient):
        async with get_client() as client:
            yield client


async def until_it_answers() -> None:
    """Return once the API answers, its database included."""
    while True:
        try:
            async with asking() as client:
                await client.read_work_pools(limit=1)
                await client.raise_for_api_version_mismatch_once()  # or contexts made later ask, and raise RuntimeError
            return
        except (httpx.HTTPError, RuntimeError) as error:
            if not is_outage(error.__cause__ if isinstance(error, RuntimeError) else error):
                raise
        await asyncio.sleep(LOOK_S)


def is_outage(error: BaseException | None) -> bool:
    """Whether the API was away, and did not say no."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code >= 500 or error.response.status_code in (408, 429)
    return isinstance(error, httpx.TransportError)


def warn(log: Log, what: str, error: Exception, level: int = logging.WARNING) -> None:
    """Log that something could not be done; what nobody raises on purpose is a mistake and shown with its traceback."""
    if isinstance(error, (GridError, PrefectException, httpx.HTTPError, TimeoutError)):
        log.log(level, "%s: %s", what, str(error) or repr(error))
    else:
        log.error("%s, for a reason that nobody thought of", what, exc_info=error)
