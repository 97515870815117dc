"""Shared code of the verbs: serving until a signal, the settings of a provider block, checks of the Prefect server."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit, urlunsplit

import httpx
from prefect.client.orchestration import get_client
from prefect.client.schemas.sorting import FlowRunSort
from prefect.settings import PREFECT_API_URL

from blocks import Provider
from blocks.block_loading import load_block
from deepgrid.cli.error_boundary import complain
from deepgrid.cli.standard_streams import LOG_FORMAT, start_logging
from deepgrid.errors import ConfigurationError, GridError
from deepgrid.findings import Finding, Level
from deepgrid.provider.session import ProviderSettings
from deepgrid.safe_http import is_loopback
from orchestration.prefect_internals import load_diagram
from orchestration.run_logs import start_run_logs
from orchestration.service import leave, serve_until_signalled
from orchestration.tracing import start_tracing

PREFECT = "prefect"
TIMEOUT_S = 10.0
SLOW_DIAGRAM_S = 3.0  # 0.2 to 0.8 s are usual, 7 to 17 s with PostgreSQL's JIT compiler
SWITCH_JIT_OFF = (
    "Run ALTER DATABASE prefect SET jit = off in its PostgreSQL, then restart the server (docs/how-to/deployments.md)."
)
REQUIRE_LOGIN = (
    "Start the server with PREFECT_SERVER_API_AUTH_STRING=user:password, and set PREFECT_API_AUTH_STRING to the same"
    " for supervisors, workers and people."
)

logger = logging.getLogger(__name__)


def serve(role: Callable[[str], Awaitable[None]], name: str) -> None:
    """Run a role with the block `name` until it ends or a SIGTERM or SIGINT arrives, then end this process.

    An error of the role ends it with a complaint. Raises ConfigurationError without a Prefect server.
    """
    require_prefect()
    start_logging()
    start_run_logs(LOG_FORMAT)
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
    """Return the settings of the provider block `cluster`.

    Raises ConfigurationError without a Prefect server or such a block, ServiceError when Prefect does not answer.
    """
    require_prefect()
    return (await load_block(Provider, cluster)).settings()


async def examine_prefect(api_url: str) -> Finding:
    """Send a harmless request without a login to the API at `api_url`. An answer is BAD.

    A client of the API can create a deployment that runs any command, and workers run it as their own account.
    """
    parts = urlsplit(api_url)
    host = parts.netloc.rpartition("@")[2]
    bare = urlunsplit(parts._replace(netloc=host))  # a login in the URL would be sent
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=not is_loopback(parts.hostname or "")) as client:
            answer = await client.post(f"{bare.rstrip('/')}/flows/count", json={})
    except (httpx.HTTPError, httpx.InvalidURL):
        return Finding(PREFECT, Level.WARNING, f"The Prefect server at {host} does not answer.", "Start it.")
    if answer.is_success:
        words = f"The Prefect API at {host} is open: any client can run commands as the workers' account."
        return Finding(PREFECT, Level.BAD, words, REQUIRE_LOGIN)
    if answer.is_server_error:
        words = f"The Prefect server at {host} fails (HTTP {answer.status_code}): it is unknown whether it is open."
        return Finding(PREFECT, Level.WARNING, words, "Look at its log, then try again.")
    return Finding(PREFECT, Level.GOOD, f"The Prefect API at {host} refuses requests without a login.")


async def examine_diagrams(slow_s: float = SLOW_DIAGRAM_S) -> Finding:
    """Time the query behind the diagram of a run, with the newest run. PostgreSQL's JIT compiler makes it slow."""
    subject = f"{PREFECT} diagrams"
    try:
        async with get_client() as client:
            runs = await client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC, limit=1)
            if not runs:
                return Finding(subject, Level.GOOD, "Prefect has no run yet, so no diagram to time.")
            began = time.monotonic()
            try:
                await load_diagram(client, runs[0].id)
            except httpx.HTTPStatusError as error:
                words = f"Prefect fails to make the diagram of a run (HTTP {error.response.status_code})."
                return Finding(subject, Level.WARNING, words, SWITCH_JIT_OFF)
            seconds = time.monotonic() - began
    except (httpx.HTTPError, TimeoutError):
        return Finding(subject, Level.WARNING, "Prefect did not answer, so no diagram was timed.", "Start its server.")
    words = f"Prefect makes the diagram of a run in {seconds:.1f} s."
    if seconds <= slow_s:
        return Finding(subject, Level.GOOD, words)
    return Finding(subject, Level.WARNING, f"{words} PostgreSQL's JIT compiler is probably on.", SWITCH_JIT_OFF)
