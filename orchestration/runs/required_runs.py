"""Starts required runs: retries through outages of Prefect and pauses of the deployment."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from prefect.client.schemas.objects import FlowRun

from orchestration.outages import warn
from orchestration.runs.flow_runs import run_ended, start_run

RETRY_S = 2.0

logger = logging.getLogger(__name__)


async def start_eventually(deployment: str, parameters: dict[str, Any], retry_s: float = RETRY_S) -> FlowRun:
    """Start a run of the deployment (`flow/name`) as soon as that is possible.

    It retries while Prefect's API is down or the deployment is paused, and logs each new reason once. The work waits
    on chain meanwhile.
    """
    logged = ""
    while True:
        try:
            return await start_run(deployment, parameters)
        except Exception as error:  # Prefect's client raises many types while its server is down
            if repr(error) != logged:
                warn(logger, f"cannot start {deployment} yet, trying again", error)
            logged = repr(error)
            await asyncio.sleep(retry_s)


async def run_to_completion(deployment: str, parameters: dict[str, Any]) -> bool:
    """Start a run as soon as that is possible and wait for its end. Returns whether it completed; logs why not."""
    try:
        run = await start_eventually(deployment, parameters)
        if await run_ended(run):
            return True
        logger.warning("run %s of %s did not complete, trying again", run.name, deployment)
    except Exception as error:  # Prefect's client raises many types
        warn(logger, f"cannot follow the run of {deployment} to its end, trying again", error)
    return False
