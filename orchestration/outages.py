"""Outages of Prefect's API: detect them soon, wait for their end, and log them.

Code that must survive any error of Prefect's client catches Exception and logs it with `warn`. That shows a bug of our
own as an unexpected error, not as an outage.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import httpx
from prefect.client.orchestration import PrefectClient, get_client
from prefect.exceptions import PrefectException
from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from deepgrid.errors import GridError

T = TypeVar("T")

Log = logging.Logger | logging.LoggerAdapter[logging.Logger]

REQUEST_TIMEOUT_S = 10.0
POLL_S = 2.0


@asynccontextmanager
async def asking() -> AsyncIterator[PrefectClient]:
    """Yield a client with short timeouts and no retries. The settings apply to all clients made in this context.

    Prefect's default client retries for one minute, or for seven when the server accepts requests and never answers.
    """
    settings = {PREFECT_API_REQUEST_TIMEOUT: REQUEST_TIMEOUT_S, PREFECT_CLIENT_MAX_RETRIES: 0}
    with temporary_settings(settings):
        async with get_client() as client:
            yield client


async def until_it_answers() -> None:
    """Return once the API and its database answer."""
    while True:
        try:
            async with asking() as client:
                await client.read_work_pools(limit=1)
                await client.raise_for_api_version_mismatch_once()  # or later contexts do it, and raise RuntimeError
            return
        except (httpx.HTTPError, RuntimeError) as error:
            if not is_outage(error.__cause__ if isinstance(error, RuntimeError) else error):
                raise
        await asyncio.sleep(POLL_S)


async def answer_of(request: Callable[[], Awaitable[T]]) -> T:
    """Send a request until Prefect answers it. Raises the error of a refusal."""
    while True:
        try:
            return await request()
        except httpx.HTTPError as error:
            if not is_outage(error):
                raise
        await asyncio.sleep(POLL_S)


def is_outage(error: BaseException | None) -> bool:
    """Return whether the error means an outage. A refusal by the API is not an outage."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code >= 500 or error.response.status_code in (408, 429)
    return isinstance(error, httpx.TransportError)


def warn(log: Log, what: str, error: Exception, level: int = logging.WARNING) -> None:
    """Log a failure. Types that no API raises on purpose are bugs, and are logged with a traceback."""
    if isinstance(error, (GridError, PrefectException, httpx.HTTPError, TimeoutError)):
        log.log(level, "%s: %s", what, str(error) or repr(error))
    else:
        log.error("%s: unexpected error", what, exc_info=error)
