"""Prefect's API when it does not answer: how to notice it soon, and how to wait until it is back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from prefect.client.orchestration import PrefectClient, get_client
from prefect.settings import PREFECT_API_REQUEST_TIMEOUT, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

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
            return
        except Exception as error:  # whatever Prefect's client raises
            if not is_outage(error):
                raise
        await asyncio.sleep(LOOK_S)


def is_outage(error: BaseException) -> bool:
    """Whether the API was away, and did not say no."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code >= 500 or error.response.status_code in (408, 429)
    return isinstance(error, httpx.TransportError)
