"""Converts faults of Prefect's API to errors that a person can act on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from prefect.settings import PREFECT_API_URL

from deepgrid.errors import ConfigurationError, ServiceError


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
