"""Checks that Prefect's API requires a login.

A client of the API can create a deployment that runs any command, and workers run it as their own account.
"""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

import httpx

from deepgrid.findings import Finding, Level
from deepgrid.safe_http import is_loopback

SUBJECT = "prefect"
TIMEOUT_S = 10.0
HOW = (
    "Start the server with PREFECT_SERVER_API_AUTH_STRING=user:password, and set PREFECT_API_AUTH_STRING to the same"
    " for supervisors, workers and people."
)


async def examine_prefect(api_url: str) -> Finding:
    """Send a harmless request without a login to the API at `api_url`. An answer is BAD."""
    parts = urlsplit(api_url)
    host = parts.netloc.rpartition("@")[2]
    bare = urlunsplit(parts._replace(netloc=host))  # a login in the URL would be sent
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=not is_loopback(parts.hostname or "")) as client:
            answer = await client.post(f"{bare.rstrip('/')}/flows/count", json={})
    except (httpx.HTTPError, httpx.InvalidURL):
        return Finding(SUBJECT, Level.WARNING, f"The Prefect server at {host} does not answer.", "Start it.")
    if answer.is_success:
        words = f"The Prefect API at {host} is open: any client can run commands as the workers' account."
        return Finding(SUBJECT, Level.BAD, words, HOW)
    if answer.is_server_error:
        words = f"The Prefect server at {host} fails (HTTP {answer.status_code}): it is unknown whether it is open."
        return Finding(SUBJECT, Level.WARNING, words, "Look at its log, then try again.")
    return Finding(SUBJECT, Level.GOOD, f"The Prefect API at {host} refuses requests without a login.")
