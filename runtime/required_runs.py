"""Starts runs that must come, through outages of Prefect and through pauses."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from prefect.client.schemas.objects import FlowRun

from runtime.outages import warn
from runtime.runs import run_ended, start_run

AGAIN_S = 2.0

logger = logging.getLogger(__name__)


async def start_at_last(deployment: str, parameters: dict[str, Any]) -> FlowRun:
    """Start a run of the deployment (`flow/name`) as soon as that is possible.

    While Prefect's API is away or the deployment is paused the work waits where it is, on chain; the
    log says so once.
    """
    said = ""
    while True:
        try:
            return await start_run(deployment, parameters)
        except Exception as error:  # whatever Prefect's client raises while its server is away
            if repr(error) != said:
                warn(logger, f"cannot start {deployment} yet, trying again", error)
            said = repr(error)
            await asyncio.sleep(AGAIN_S)


async def see_through(deployment: str, parameters: dict[str, Any]) -> bool:
    """Start a run as soon as that is possible and wait for its end; whether it completed. The log says why not."""
    try:
        run = await start_at_last(deployment, parameters)
        if await run_ended(run):
            return True
        logger.warning("the run %s of %s did not complete, trying again", run.name, deployment)
    except Exception as error:  # whatever Prefect's client raises
        warn(logger, f"{deployment} was not seen to its end, trying again", error)
    return False
